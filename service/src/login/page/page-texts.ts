/** Languages of the pages (decisions section 2, rule 8). */
export const locales = ["en", "de", "fr", "it", "es"] as const;
export type Locale = (typeof locales)[number];

/**
 * Everything the pages say; `{name}` is filled in by the page. English defines the keys, and the compiler demands them
 * of the other languages.
 */
const en = {
  title: "Log in to {client}",
  verified: "Verified site: {domain}",
  unverified: "Unverified: nobody has checked who runs this site.",
  host: "You are on {host}. The address bar of your browser must show the same name.",
  receives: "{client} will receive",
  receivesIdentity: "Your identity (its address)",
  receivesStay: "Access until you end it in your wallet",
  receivesBusiness: "Your business and your role in it",
  scanTitle: "Scan with your wallet",
  scanHint: "Open the wallet on your phone, scan the code and approve.",
  qrLabel: "QR code for the wallet",
  timeLeft: "Time left: {time}",
  or: "or",
  sameDevice: "Open the wallet on this device",
  sameDeviceOnly:
    "This site takes a login only on the device that holds your wallet. Open this page there.",
  sameDeviceHint: "Nothing opens? The wallet is not on this device: scan the code with it.",
  noScript:
    "The code changes every few seconds, which needs JavaScript. Without it, show one code that stays.",
  showCode: "Show code",
  staticHint: "When you have scanned the code, press Continue.",
  continue: "Continue",
  newCode: "New code",
  numberTitle: "Enter this number in your wallet",
  numberHint: "Only if you started this login yourself. Never tell the number to anyone.",
  confirmTitle: "Confirm in your wallet",
  confirmHint: "Approve only if you started this login yourself.",
  openedHint:
    "This login is open in the wallet on this device, which brings you back here by itself.",
  claimedBy: "Identity: {identity}",
  approvedContinue: "When you have approved, press Continue.",
  contested:
    "A second wallet tried to take this login and was refused. Approve only if the identity shown here is yours.",
  offline: "No connection. Trying again…",
  gatheringTitle: "Waiting for other members of the business",
  gatheringHint: "They find this login in their wallets.",
  gatheringOn: "This page goes on by itself when enough of them have approved.",
  gatheringContinue: "When they have approved, press Continue.",
  approvedTitle: "Approved",
  approvedHint: "Taking you back to {client}.",
  expiredTitle: "The time is up",
  expiredHint: "Nothing was shared.",
  wrongNumberTitle: "That was not the number",
  wrongNumberHint:
    "The wallet sent another number than the one shown here, so this login has ended. Nothing was shared.",
  declinedTitle: "Declined",
  declinedHint: "The login was declined in the wallet. Nothing was shared.",
  notStartedTitle: "Stopped",
  notStartedHint: "The wallet's owner did not start this login. Nothing was shared.",
  otherBrowserTitle: "Another browser",
  otherBrowserHint:
    "The wallet came back to a browser that had not started this login, so it has ended. Start again and stay in one browser.",
  restartedTitle: "Started again in another tab",
  restartedHint: "This page is out of date. Go on in the other tab.",
  overTitle: "This login has ended",
  overHint: "It was finished in another tab, or its time is up.",
  noCookieHint:
    "Your browser does not hold the cookie of this login. If it blocks cookies, allow them for this page. Then start again at the site you came from.",
  startAgain: "Start again",
  back: "Back to {client}",
  errorTitle: "This login cannot go on",
  errorTooMany: "Too many attempts",
  errorHere: "Something failed here",
  errorHint: "Go back to the site you came from and start the login there again.",
  errorIdentity:
    "Your wallet answered with another identity than the one that is asked for here. Choose that one in the wallet.",
  errorRetry: "Go back to the page of this login.",
  errorWait: "Try again in {seconds} s.",
  tryAgain: "Try again",
  errorDetails: "Details for the site’s developers",
  errorCode: "Error",
  errorMessage: "Message",
  errorRequest: "Request",
  logoutFailedTitle: "This logout cannot go on",
  logoutFailedHint: "You may still be logged in here.",
  logoutTitle: "Log out?",
  logoutAsk: "{client} asks to end your session here.",
  logoutAskUnknown: "A site asks to end your session here.",
  logoutIdentity: "You are logged in as {identity}.",
  logOut: "Log out",
  stay: "Stay logged in",
  loggedOutTitle: "You are logged out",
  stayedTitle: "You are still logged in",
  closePage: "You can close this page.",
};

export type TextKey = keyof typeof en;

const de: Record<TextKey, string> = {
  title: "Bei {client} anmelden",
  verified: "Geprüfte Website: {domain}",
  unverified: "Ungeprüft: Niemand hat kontrolliert, wer diese Website betreibt.",
  host: "Sie sind auf {host}. Die Adresszeile Ihres Browsers muss denselben Namen zeigen.",
  receives: "{client} erhält",
  receivesIdentity: "Ihre Identität (deren Adresse)",
  receivesStay: "Zugriff, bis Sie ihn im Wallet beenden",
  receivesBusiness: "Ihr Unternehmen und Ihre Rolle darin",
  scanTitle: "Mit dem Wallet scannen",
  scanHint: "Öffnen Sie das Wallet auf Ihrem Telefon, scannen Sie den Code und stimmen Sie zu.",
  qrLabel: "QR-Code für das Wallet",
  timeLeft: "Verbleibende Zeit: {time}",
  or: "oder",
  sameDevice: "Wallet auf diesem Gerät öffnen",
  sameDeviceOnly:
    "Diese Seite nimmt eine Anmeldung nur auf dem Gerät an, auf dem Ihr Wallet ist. Öffnen Sie die Seite dort.",
  sameDeviceHint:
    "Nichts öffnet sich? Das Wallet ist nicht auf diesem Gerät: Scannen Sie den Code damit.",
  noScript:
    "Der Code wechselt alle paar Sekunden und braucht dafür JavaScript. Lassen Sie sich sonst einen Code zeigen, der bleibt.",
  showCode: "Code anzeigen",
  staticHint: "Wenn Sie den Code gescannt haben, drücken Sie auf Weiter.",
  continue: "Weiter",
  newCode: "Neuer Code",
  numberTitle: "Diese Zahl im Wallet eingeben",
  numberHint: "Nur, wenn Sie diese Anmeldung selbst begonnen haben. Nennen Sie die Zahl niemandem.",
  confirmTitle: "Im Wallet bestätigen",
  confirmHint: "Stimmen Sie nur zu, wenn Sie diese Anmeldung selbst begonnen haben.",
  openedHint:
    "Diese Anmeldung ist im Wallet auf diesem Gerät geöffnet. Es bringt Sie von selbst hierher zurück.",
  claimedBy: "Identität: {identity}",
  approvedContinue: "Wenn Sie zugestimmt haben, drücken Sie auf Weiter.",
  contested:
    "Ein zweites Wallet wollte diese Anmeldung übernehmen und wurde abgewiesen. Stimmen Sie nur zu, wenn die hier gezeigte Identität Ihre ist.",
  offline: "Keine Verbindung. Neuer Versuch …",
  gatheringTitle: "Warten auf andere Mitglieder des Unternehmens",
  gatheringHint: "Sie finden diese Anmeldung in ihren Wallets.",
  gatheringOn: "Diese Seite geht von selbst weiter, sobald genug von ihnen zugestimmt haben.",
  gatheringContinue: "Wenn sie zugestimmt haben, auf «Weiter» drücken.",
  approvedTitle: "Zugestimmt",
  approvedHint: "Es geht zurück zu {client}.",
  expiredTitle: "Die Zeit ist abgelaufen",
  expiredHint: "Es wurde nichts weitergegeben.",
  wrongNumberTitle: "Das war nicht die Zahl",
  wrongNumberHint:
    "Das Wallet hat eine andere Zahl gesendet als die hier gezeigte; diese Anmeldung ist beendet. Es wurde nichts weitergegeben.",
  declinedTitle: "Abgelehnt",
  declinedHint: "Die Anmeldung wurde im Wallet abgelehnt. Es wurde nichts weitergegeben.",
  notStartedTitle: "Abgebrochen",
  notStartedHint:
    "Wer das Wallet besitzt, hat diese Anmeldung nicht begonnen. Es wurde nichts weitergegeben.",
  otherBrowserTitle: "Anderer Browser",
  otherBrowserHint:
    "Das Wallet kam in einen Browser zurück, der diese Anmeldung nicht begonnen hat; sie ist beendet. Beginnen Sie neu und bleiben Sie in einem Browser.",
  restartedTitle: "In einem anderen Tab neu begonnen",
  restartedHint: "Diese Seite ist überholt. Machen Sie im anderen Tab weiter.",
  overTitle: "Diese Anmeldung ist beendet",
  overHint: "Sie wurde in einem anderen Tab abgeschlossen, oder ihre Zeit ist abgelaufen.",
  noCookieHint:
    "Ihr Browser hat das Cookie dieser Anmeldung nicht. Falls er Cookies blockiert, erlauben Sie sie für diese Seite. Beginnen Sie dann bei der Website neu, von der Sie kommen.",
  startAgain: "Neu beginnen",
  back: "Zurück zu {client}",
  errorTitle: "Diese Anmeldung kann nicht weitergehen",
  errorTooMany: "Zu viele Versuche",
  errorHere: "Hier ist etwas fehlgeschlagen",
  errorHint:
    "Gehen Sie zurück zur Website, von der Sie kommen, und beginnen Sie die Anmeldung dort neu.",
  errorIdentity:
    "Ihr Wallet hat mit einer anderen Identität geantwortet als der, die hier verlangt ist. Wählen Sie diese im Wallet.",
  errorRetry: "Gehen Sie zurück zur Seite dieser Anmeldung.",
  errorWait: "Versuchen Sie es in {seconds} s wieder.",
  tryAgain: "Nochmals versuchen",
  errorDetails: "Angaben für die Entwickler der Website",
  errorCode: "Fehler",
  errorMessage: "Meldung",
  errorRequest: "Anfrage",
  logoutFailedTitle: "Diese Abmeldung kann nicht weitergehen",
  logoutFailedHint: "Sie sind hier vielleicht noch angemeldet.",
  logoutTitle: "Abmelden?",
  logoutAsk: "{client} möchte Ihre Sitzung hier beenden.",
  logoutAskUnknown: "Eine Website möchte Ihre Sitzung hier beenden.",
  logoutIdentity: "Sie sind angemeldet als {identity}.",
  logOut: "Abmelden",
  stay: "Angemeldet bleiben",
  loggedOutTitle: "Sie sind abgemeldet",
  stayedTitle: "Sie sind weiterhin angemeldet",
  closePage: "Sie können diese Seite schliessen.",
};

const fr: Record<TextKey, string> = {
  title: "Se connecter à {client}",
  verified: "Site vérifié : {domain}",
  unverified: "Non vérifié : personne n’a contrôlé qui exploite ce site.",
  host: "Vous êtes sur {host}. La barre d’adresse de votre navigateur doit afficher le même nom.",
  receives: "{client} recevra",
  receivesIdentity: "Votre identité (son adresse)",
  receivesStay: "Un accès jusqu’à ce que vous y mettiez fin dans votre portefeuille",
  receivesBusiness: "Votre entreprise et votre rôle",
  scanTitle: "Scannez avec votre portefeuille",
  scanHint: "Ouvrez le portefeuille sur votre téléphone, scannez le code et approuvez.",
  qrLabel: "Code QR pour le portefeuille",
  timeLeft: "Temps restant : {time}",
  or: "ou",
  sameDevice: "Ouvrir le portefeuille sur cet appareil",
  sameDeviceOnly:
    "Ce site n’accepte une connexion que sur l’appareil qui contient votre portefeuille. Ouvrez cette page sur cet appareil.",
  sameDeviceHint:
    "Rien ne s’ouvre ? Le portefeuille n’est pas sur cet appareil : scannez le code avec lui.",
  noScript:
    "Le code change toutes les quelques secondes, ce qui demande JavaScript. Sans lui, affichez un code unique qui reste.",
  showCode: "Afficher le code",
  staticHint: "Après avoir scanné le code, appuyez sur Continuer.",
  continue: "Continuer",
  newCode: "Nouveau code",
  numberTitle: "Saisissez ce nombre dans votre portefeuille",
  numberHint:
    "Seulement si vous avez commencé cette connexion vous-même. Ne communiquez ce nombre à personne.",
  confirmTitle: "Confirmez dans votre portefeuille",
  confirmHint: "N’approuvez que si vous avez commencé cette connexion vous-même.",
  openedHint:
    "Cette connexion est ouverte dans le portefeuille sur cet appareil, qui vous ramène ici de lui-même.",
  claimedBy: "Identité : {identity}",
  approvedContinue: "Après avoir approuvé, appuyez sur Continuer.",
  contested:
    "Un second portefeuille a tenté de prendre cette connexion et a été refusé. N’approuvez que si l’identité affichée ici est la vôtre.",
  offline: "Pas de connexion. Nouvel essai…",
  gatheringTitle: "En attente d’autres membres de l’entreprise",
  gatheringHint: "Ils trouvent cette connexion dans leurs portefeuilles.",
  gatheringOn: "Cette page continue d’elle-même dès qu’assez d’entre eux ont approuvé.",
  gatheringContinue: "Quand ils ont approuvé, appuyez sur Continuer.",
  approvedTitle: "Approuvé",
  approvedHint: "Retour à {client}.",
  expiredTitle: "Le temps est écoulé",
  expiredHint: "Rien n’a été transmis.",
  wrongNumberTitle: "Ce n’était pas le bon nombre",
  wrongNumberHint:
    "Le portefeuille a envoyé un autre nombre que celui affiché ici : cette connexion est terminée. Rien n’a été transmis.",
  declinedTitle: "Refusé",
  declinedHint: "La connexion a été refusée dans le portefeuille. Rien n’a été transmis.",
  notStartedTitle: "Interrompu",
  notStartedHint:
    "La personne qui détient le portefeuille n’a pas commencé cette connexion. Rien n’a été transmis.",
  otherBrowserTitle: "Un autre navigateur",
  otherBrowserHint:
    "Le portefeuille est revenu dans un navigateur qui n’avait pas commencé cette connexion : elle est terminée. Recommencez et restez dans un seul navigateur.",
  restartedTitle: "Recommencé dans un autre onglet",
  restartedHint: "Cette page est dépassée. Poursuivez dans l’autre onglet.",
  overTitle: "Cette connexion est terminée",
  overHint: "Elle s’est achevée dans un autre onglet, ou son temps est écoulé.",
  noCookieHint:
    "Votre navigateur n’a pas le cookie de cette connexion. S’il bloque les cookies, autorisez-les pour cette page. Recommencez ensuite sur le site d’où vous venez.",
  startAgain: "Recommencer",
  back: "Retour à {client}",
  errorTitle: "Cette connexion ne peut pas continuer",
  errorTooMany: "Trop de tentatives",
  errorHere: "Une erreur s’est produite ici",
  errorHint: "Retournez au site d’où vous venez et recommencez-y la connexion.",
  errorIdentity:
    "Votre portefeuille a répondu avec une autre identité que celle qui est demandée ici. Choisissez celle-ci dans le portefeuille.",
  errorRetry: "Retournez à la page de cette connexion.",
  errorWait: "Réessayez dans {seconds} s.",
  tryAgain: "Réessayer",
  errorDetails: "Détails pour les développeurs du site",
  errorCode: "Erreur",
  errorMessage: "Message",
  errorRequest: "Requête",
  logoutFailedTitle: "Cette déconnexion ne peut pas continuer",
  logoutFailedHint: "Vous êtes peut-être encore connecté ici.",
  logoutTitle: "Se déconnecter ?",
  logoutAsk: "{client} demande de mettre fin à votre session ici.",
  logoutAskUnknown: "Un site demande de mettre fin à votre session ici.",
  logoutIdentity: "Vous êtes connecté en tant que {identity}.",
  logOut: "Se déconnecter",
  stay: "Rester connecté",
  loggedOutTitle: "Vous êtes déconnecté",
  stayedTitle: "Vous êtes toujours connecté",
  closePage: "Vous pouvez fermer cette page.",
};

const it: Record<TextKey, string> = {
  title: "Accedi a {client}",
  verified: "Sito verificato: {domain}",
  unverified: "Non verificato: nessuno ha controllato chi gestisce questo sito.",
  host: "Ti trovi su {host}. La barra degli indirizzi del browser deve mostrare lo stesso nome.",
  receives: "{client} riceverà",
  receivesIdentity: "La tua identità (il suo indirizzo)",
  receivesStay: "L’accesso finché non lo termini nel wallet",
  receivesBusiness: "La tua azienda e il tuo ruolo",
  scanTitle: "Scansiona con il wallet",
  scanHint: "Apri il wallet sul telefono, scansiona il codice e approva.",
  qrLabel: "Codice QR per il wallet",
  timeLeft: "Tempo rimasto: {time}",
  or: "oppure",
  sameDevice: "Apri il wallet su questo dispositivo",
  sameDeviceOnly:
    "Questo sito accetta l’accesso solo sul dispositivo che contiene il tuo wallet. Apri questa pagina su quel dispositivo.",
  sameDeviceHint:
    "Non si apre nulla? Il wallet non è su questo dispositivo: usalo per scansionare il codice.",
  noScript:
    "Il codice cambia ogni pochi secondi e per questo serve JavaScript. Altrimenti mostra un codice unico che resta.",
  showCode: "Mostra il codice",
  staticHint: "Dopo aver scansionato il codice, premi Continua.",
  continue: "Continua",
  newCode: "Nuovo codice",
  numberTitle: "Inserisci questo numero nel wallet",
  numberHint: "Solo se hai iniziato tu questo accesso. Non comunicare il numero a nessuno.",
  confirmTitle: "Conferma nel wallet",
  confirmHint: "Approva solo se hai iniziato tu questo accesso.",
  openedHint:
    "Questo accesso è aperto nel wallet su questo dispositivo, che ti riporta qui da solo.",
  claimedBy: "Identità: {identity}",
  approvedContinue: "Dopo aver approvato, premi Continua.",
  contested:
    "Un secondo wallet ha tentato di prendere questo accesso ed è stato respinto. Approva solo se l’identità mostrata qui è la tua.",
  offline: "Nessuna connessione. Nuovo tentativo…",
  gatheringTitle: "In attesa di altri membri dell’azienda",
  gatheringHint: "Trovano questo accesso nei loro wallet.",
  gatheringOn: "Questa pagina prosegue da sola quando un numero sufficiente di loro ha approvato.",
  gatheringContinue: "Quando hanno approvato, premi Continua.",
  approvedTitle: "Approvato",
  approvedHint: "Ritorno a {client}.",
  expiredTitle: "Il tempo è scaduto",
  expiredHint: "Non è stato trasmesso nulla.",
  wrongNumberTitle: "Il numero non era quello",
  wrongNumberHint:
    "Il wallet ha inviato un numero diverso da quello mostrato qui, quindi l’accesso è terminato. Non è stato trasmesso nulla.",
  declinedTitle: "Rifiutato",
  declinedHint: "L’accesso è stato rifiutato nel wallet. Non è stato trasmesso nulla.",
  notStartedTitle: "Interrotto",
  notStartedHint:
    "Chi possiede il wallet non ha iniziato questo accesso. Non è stato trasmesso nulla.",
  otherBrowserTitle: "Un altro browser",
  otherBrowserHint:
    "Il wallet è tornato in un browser che non aveva iniziato questo accesso, quindi è terminato. Ricomincia e resta in un solo browser.",
  restartedTitle: "Ricominciato in un’altra scheda",
  restartedHint: "Questa pagina è superata. Continua nell’altra scheda.",
  overTitle: "Questo accesso è terminato",
  overHint: "È stato completato in un’altra scheda oppure il tempo è scaduto.",
  noCookieHint:
    "Il tuo browser non ha il cookie di questo accesso. Se blocca i cookie, consentili per questa pagina. Poi ricomincia dal sito da cui provieni.",
  startAgain: "Ricomincia",
  back: "Torna a {client}",
  errorTitle: "Questo accesso non può continuare",
  errorTooMany: "Troppi tentativi",
  errorHere: "Qui qualcosa non ha funzionato",
  errorHint: "Torna al sito da cui provieni e ricomincia lì l’accesso.",
  errorIdentity:
    "Il tuo wallet ha risposto con un’identità diversa da quella richiesta qui. Scegli quella nel wallet.",
  errorRetry: "Torna alla pagina di questo accesso.",
  errorWait: "Riprova tra {seconds} s.",
  tryAgain: "Riprova",
  errorDetails: "Dettagli per gli sviluppatori del sito",
  errorCode: "Errore",
  errorMessage: "Messaggio",
  errorRequest: "Richiesta",
  logoutFailedTitle: "Questa uscita non può continuare",
  logoutFailedHint: "Forse il tuo accesso qui è ancora attivo.",
  logoutTitle: "Uscire?",
  logoutAsk: "{client} chiede di terminare la tua sessione qui.",
  logoutAskUnknown: "Un sito chiede di terminare la tua sessione qui.",
  logoutIdentity: "Hai effettuato l’accesso come {identity}.",
  logOut: "Esci",
  stay: "Resta connesso",
  loggedOutTitle: "Sei uscito",
  stayedTitle: "Sei ancora connesso",
  closePage: "Puoi chiudere questa pagina.",
};

const es: Record<TextKey, string> = {
  title: "Iniciar sesión en {client}",
  verified: "Sitio verificado: {domain}",
  unverified: "Sin verificar: nadie ha comprobado quién gestiona este sitio.",
  host: "Está en {host}. La barra de direcciones de su navegador debe mostrar el mismo nombre.",
  receives: "{client} recibirá",
  receivesIdentity: "Su identidad (la dirección)",
  receivesStay: "Acceso hasta que usted lo termine en su monedero",
  receivesBusiness: "Su empresa y su función en ella",
  scanTitle: "Escanee con su monedero",
  scanHint: "Abra el monedero en su teléfono, escanee el código y apruebe.",
  qrLabel: "Código QR para el monedero",
  timeLeft: "Tiempo restante: {time}",
  or: "o",
  sameDevice: "Abrir el monedero en este dispositivo",
  sameDeviceOnly:
    "Este sitio solo acepta el inicio de sesión en el dispositivo que tiene su monedero. Abra esta página allí.",
  sameDeviceHint:
    "¿No se abre nada? El monedero no está en este dispositivo: escanee el código con él.",
  noScript:
    "El código cambia cada pocos segundos y para ello necesita JavaScript. Sin él, muestre un único código que permanece.",
  showCode: "Mostrar el código",
  staticHint: "Cuando haya escaneado el código, pulse Continuar.",
  continue: "Continuar",
  newCode: "Código nuevo",
  numberTitle: "Introduzca este número en su monedero",
  numberHint: "Solo si usted ha iniciado esta sesión. No comunique el número a nadie.",
  confirmTitle: "Confirme en su monedero",
  confirmHint: "Apruebe solo si usted ha iniciado esta sesión.",
  openedHint:
    "Este inicio de sesión está abierto en el monedero de este dispositivo, que le devuelve aquí por sí solo.",
  claimedBy: "Identidad: {identity}",
  approvedContinue: "Cuando haya aprobado, pulse Continuar.",
  contested:
    "Un segundo monedero intentó tomar este inicio de sesión y fue rechazado. Apruebe solo si la identidad que se muestra aquí es la suya.",
  offline: "Sin conexión. Reintentando…",
  gatheringTitle: "En espera de otros miembros de la empresa",
  gatheringHint: "Encuentran este inicio de sesión en sus carteras.",
  gatheringOn: "Esta página sigue sola cuando un número suficiente de ellos haya aprobado.",
  gatheringContinue: "Cuando hayan aprobado, pulse Continuar.",
  approvedTitle: "Aprobado",
  approvedHint: "Volviendo a {client}.",
  expiredTitle: "Se acabó el tiempo",
  expiredHint: "No se ha compartido nada.",
  wrongNumberTitle: "Ese no era el número",
  wrongNumberHint:
    "El monedero envió un número distinto del que se muestra aquí, por lo que este inicio de sesión ha terminado. No se ha compartido nada.",
  declinedTitle: "Rechazado",
  declinedHint: "El inicio de sesión se rechazó en el monedero. No se ha compartido nada.",
  notStartedTitle: "Detenido",
  notStartedHint: "Quien posee el monedero no inició esta sesión. No se ha compartido nada.",
  otherBrowserTitle: "Otro navegador",
  otherBrowserHint:
    "El monedero volvió a un navegador que no había iniciado esta sesión, por lo que ha terminado. Empiece de nuevo y permanezca en un solo navegador.",
  restartedTitle: "Empezado de nuevo en otra pestaña",
  restartedHint: "Esta página está desfasada. Continúe en la otra pestaña.",
  overTitle: "Este inicio de sesión ha terminado",
  overHint: "Se completó en otra pestaña o se acabó el tiempo.",
  noCookieHint:
    "Su navegador no tiene la cookie de este inicio de sesión. Si bloquea las cookies, permítalas para esta página. Después empiece de nuevo en el sitio del que viene.",
  startAgain: "Empezar de nuevo",
  back: "Volver a {client}",
  errorTitle: "Este inicio de sesión no puede continuar",
  errorTooMany: "Demasiados intentos",
  errorHere: "Algo ha fallado aquí",
  errorHint: "Vuelva al sitio del que viene y comience allí de nuevo.",
  errorIdentity:
    "Su monedero respondió con otra identidad que la que se pide aquí. Elija esa en el monedero.",
  errorRetry: "Vuelva a la página de este inicio de sesión.",
  errorWait: "Inténtelo de nuevo en {seconds} s.",
  tryAgain: "Reintentar",
  errorDetails: "Detalles para los desarrolladores del sitio",
  errorCode: "Error",
  errorMessage: "Mensaje",
  errorRequest: "Solicitud",
  logoutFailedTitle: "Este cierre de sesión no puede continuar",
  logoutFailedHint: "Puede que su sesión siga abierta aquí.",
  logoutTitle: "¿Cerrar sesión?",
  logoutAsk: "{client} pide terminar su sesión aquí.",
  logoutAskUnknown: "Un sitio pide terminar su sesión aquí.",
  logoutIdentity: "Ha iniciado sesión como {identity}.",
  logOut: "Cerrar sesión",
  stay: "Seguir conectado",
  loggedOutTitle: "Ha cerrado la sesión",
  stayedTitle: "Su sesión sigue abierta",
  closePage: "Puede cerrar esta página.",
};

export const texts: Readonly<Record<Locale, Readonly<Record<TextKey, string>>>> = {
  en,
  de,
  fr,
  it,
  es,
};

/**
 * Chooses the language: the first of `ui_locales` that is available (OpenID Connect Core 3.1.2.1), else the best of
 * `Accept-Language` (RFC 9110 section 12.5.4), else English. Anything malformed counts as absent.
 */
export function pickLocale(
  uiLocales: string | undefined,
  acceptLanguage: string | undefined,
): Locale {
  const asked = (uiLocales ?? "").slice(0, languageListMax).split(" ");
  return firstKnown(asked) ?? firstKnown(rankedLanguages(acceptLanguage ?? "")) ?? "en";
}

/** How many characters are read; a browser sends fewer than 100. */
const languageListMax = 500;

function rankedLanguages(header: string): string[] {
  return header
    .slice(0, languageListMax)
    .split(",")
    .map((entry) => {
      const [tag = "", ...parameters] = entry.split(";").map((part) => part.trim());
      const quality = parameters.find((parameter) => parameter.startsWith("q="));
      return { tag, quality: quality === undefined ? 1 : Number(quality.slice(2)) };
    })
    .filter(({ quality }) => quality > 0 && quality <= 1)
    .toSorted((a, b) => b.quality - a.quality)
    .map(({ tag }) => tag);
}

function firstKnown(tags: readonly string[]): Locale | undefined {
  for (const tag of tags) {
    const [language = ""] = tag.toLowerCase().split("-");
    const known = locales.find((locale) => locale === language);
    if (known !== undefined) return known;
  }
  return undefined;
}
