import { execFile } from "node:child_process";
import { access, lstat, mkdtemp, rename, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { chromium, type Browser, type Page } from "playwright-core";
import { patienceMs } from "../patience.ts";

/** Part of the directory's name, so that a newer package never meets an older unpacked browser. */
const packageVersion = "153.0.0";

const switches = [
  "--no-sandbox", // tests also run as root, where the sandbox refuses to start
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-domain-reliability",
  "--disable-default-apps",
  "--disable-sync",
  "--no-pings",
  "--font-render-hinting=none",
  "--force-color-profile=srgb",
];

/** Playwright sets it, since a browser crashes if shared memory runs out. */
const diskSwitch = "--disable-dev-shm-usage";
/** Many times what the pages of a test share at once. */
const sharedMemoryBytes = 1024 ** 3;

/**
 * Starts the Chromium that ships inside an npm package: no download, no system package, fonts included (Open Sans for
 * every family). Close it with `await using`. On platforms other than Linux x64 the installed Chrome is used.
 *
 * @throws {Error} when there is no browser for this machine
 */
export async function openBrowser(): Promise<Browser & AsyncDisposable> {
  const options = { args: switches, headless: true, timeout: patienceMs };
  if (process.platform !== "linux" || process.arch !== "x64")
    return patient(await chromium.launch({ ...options, channel: "chrome" }));
  const home = await unpackedBrowser();
  // Otherwise its processes share their data, such as each frame, by files on the disk: a twentieth of its CPU time.
  const hasRoom = await statfs("/dev/shm").then(
    ({ bavail, bsize }) => bavail * bsize >= sharedMemoryBytes,
    () => false,
  );
  const browser = await chromium.launch({
    ...options,
    ...(hasRoom && { ignoreDefaultArgs: [diskSwitch] }),
    executablePath: join(home, "chromium"),
    env: {
      HOME: home,
      FONTCONFIG_FILE: join(home, "fonts.conf"),
      LD_LIBRARY_PATH: join(home, "al2023", "lib"),
    },
  });
  return patient(browser);
}

/** Playwright waits 30 s for what should happen, which is no promise of the pages either. */
function patient<B extends Browser>(browser: B): B {
  const open = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await open(options);
    context.setDefaultTimeout(patienceMs);
    return context;
  };
  return browser;
}

/** Saves a screenshot for people to look at, if `SCREENSHOTS` names a directory. */
export async function takePicture(page: Page, name: string): Promise<void> {
  const directory = process.env["SCREENSHOTS"];
  if (directory === undefined) return;
  await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true });
}

/** The directory of the unpacked browser. Several processes may call this at once: the first rename wins. */
async function unpackedBrowser(): Promise<string> {
  const { uid } = userInfo();
  const home = join(tmpdir(), `svc-chromium-${packageVersion}-${uid}`);
  if (await isPresent(home)) return home;
  const staging = await mkdtemp(`${home}-`);
  try {
    await unpackInto(staging);
    await writeFile(join(staging, "fonts.conf"), fontsConfiguration(home));
    await rename(staging, home);
  } catch (error) {
    if (!(await isPresent(home))) throw error;
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
  return home;
}

/** Refuses a directory that another user put there, because its programs would run as this user. */
async function isPresent(home: string): Promise<boolean> {
  try {
    await access(join(home, "fonts.conf"));
  } catch {
    return false;
  }
  const { uid, mode } = await lstat(home);
  if (uid !== userInfo().uid || (mode & 0o022) !== 0)
    throw new Error(`${home} belongs to someone else; remove it`);
  return true;
}

/**
 * The package unpacks into `TMPDIR`, and its libraries (NSS, which a bare machine lacks) only where it believes to run
 * on Amazon Linux. A process of its own takes both as environment, so ours stays as it is.
 */
async function unpackInto(directory: string): Promise<void> {
  const program = `import chromium from "@sparticuz/chromium"; await chromium.executablePath();`;
  await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: import.meta.dirname,
    env: { TMPDIR: directory, AWS_EXECUTION_ENV: "AWS_Lambda_nodejs24.x" },
    timeout: patienceMs,
  });
}

function fontsConfiguration(home: string): string {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>${home}/fonts/fonts</dir><cachedir>${home}/fonts-cache</cachedir></fontconfig>
`;
}
