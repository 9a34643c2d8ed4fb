import buildAjvCompiler, { type BuildCompilerFromPool } from "@fastify/ajv-compiler";
import { SerializerSelector } from "@fastify/fast-json-stringify-compiler";

type Validate = ReturnType<ReturnType<BuildCompilerFromPool>>;

const buildValidators = buildAjvCompiler();
const buildSerializers = SerializerSelector();

/**
 * Fastify's own schema compilers, which here compile each schema at its first use: of several hundred most processes
 * need a few, and compiling all of them is a fifth of a start. For fastify's `schemaController.compilersFactory`.
 */
export const lazySchemas = {
  buildValidator: (
    ...given: Parameters<BuildCompilerFromPool>
  ): ReturnType<BuildCompilerFromPool> => {
    const compile = buildValidators(...given);
    return (route) => {
      let compiled: Validate | undefined;
      const validate = ((data: unknown) => {
        compiled ??= compile(route);
        const isValid = compiled(data);
        validate.errors = compiled.errors ?? null;
        return isValid;
      }) as Validate;
      return validate;
    };
  },
  buildSerializer: (
    ...given: Parameters<typeof buildSerializers>
  ): ReturnType<typeof buildSerializers> => {
    const compile = buildSerializers(...given);
    return (route) => {
      let serialize: ((answer: unknown) => string) | undefined;
      return (answer) => {
        serialize ??= compile(route);
        return serialize(answer);
      };
    };
  },
};
