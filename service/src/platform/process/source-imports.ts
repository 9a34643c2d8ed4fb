import { registerHooks, type ResolveFnOutput } from "node:module";

/**
 * Resolves what our own sources import from now on by its name alone. Node asks the file system about each of 2,500
 * such imports, and for the package that its file belongs to: a tenth of the CPU time of a start, and a fifth of a
 * verb's. Call it before the rest is imported.
 */
export function resolveSourcesByName(): void {
  const packages = new Map<string, ResolveFnOutput>();
  registerHooks({
    resolve(specifier, context, next) {
      const { parentURL } = context;
      if (parentURL === undefined || parentURL.includes("/node_modules/"))
        return next(specifier, context);
      const source = sourceOf(specifier, parentURL);
      if (source !== null) return source;
      const known = packages.get(specifier);
      if (known !== undefined) return known;
      const resolved = next(specifier, context);
      // Those of the repository are the same from everywhere.
      if (specifier.startsWith("@svc/"))
        packages.set(specifier, { ...resolved, shortCircuit: true });
      return resolved;
    },
  });
}

/** Resolves a relative import of a source. @returns null for any other import */
function sourceOf(specifier: string, parentURL: string): ResolveFnOutput | null {
  if (!specifier.startsWith(".") || !specifier.endsWith(".ts")) return null;
  const { href } = new URL(specifier, parentURL);
  return { url: href, format: "module-typescript", shortCircuit: true };
}
