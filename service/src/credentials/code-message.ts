import type { Locale } from "../platform/http/pick-locale.ts";

/** A code of an e-mail verification, and the short form of the identity that asked for it. */
interface Code {
  readonly code: string;
  readonly identity: string;
}

interface Wording {
  readonly subject: (given: Code) => string;
  readonly typeIt: (given: Code) => string;
  readonly askedBy: (given: Code) => string;
  readonly notYou: string;
}

const wordings: Record<Locale, Wording> = {
  en: {
    subject: ({ code }) => `${code} is your code`,
    typeIt: ({ code }) => `Type this code into your wallet: ${code}`,
    askedBy: ({ identity }) =>
      `It was asked for by the identity ${identity} and is good for ten minutes.`,
    notYou:
      "If that is not you, ignore this message: without the code nothing happens. Give it to nobody.",
  },
  de: {
    subject: ({ code }) => `${code} ist Ihr Code`,
    typeIt: ({ code }) => `Geben Sie diesen Code in Ihrem Wallet ein: ${code}`,
    askedBy: ({ identity }) =>
      `Er wurde von der Identität ${identity} verlangt und gilt zehn Minuten.`,
    notYou:
      "Wenn das nicht Sie sind, beachten Sie diese Nachricht nicht: Ohne den Code geschieht nichts. Geben Sie ihn niemandem.",
  },
  fr: {
    subject: ({ code }) => `${code} est votre code`,
    typeIt: ({ code }) => `Saisissez ce code dans votre portefeuille\u00a0: ${code}`,
    askedBy: ({ identity }) =>
      `Il a été demandé par l’identité ${identity} et reste valable dix minutes.`,
    notYou:
      "Si ce n’est pas vous, ignorez ce message\u00a0: sans le code, rien ne se passe. Ne le communiquez à personne.",
  },
  it: {
    subject: ({ code }) => `${code} è il tuo codice`,
    typeIt: ({ code }) => `Inserisci questo codice nel wallet: ${code}`,
    askedBy: ({ identity }) => `È stato richiesto dall’identità ${identity} e vale dieci minuti.`,
    notYou:
      "Se non sei tu, ignora questo messaggio: senza il codice non succede nulla. Non comunicarlo a nessuno.",
  },
  es: {
    subject: ({ code }) => `${code} es su código`,
    typeIt: ({ code }) => `Escriba este código en su monedero: ${code}`,
    askedBy: ({ identity }) => `Lo ha pedido la identidad ${identity} y vale diez minutos.`,
    notYou:
      "Si no es usted, ignore este mensaje: sin el código no ocurre nada. No lo comunique a nadie.",
  },
};

/** The message that carries a code, in one of the languages. */
export function codeMessage(locale: Locale, given: Code): { subject: string; text: string } {
  const { subject, typeIt, askedBy, notYou } = wordings[locale];
  return {
    subject: subject(given),
    text: [typeIt(given), "", askedBy(given), notYou].join("\n"),
  };
}
