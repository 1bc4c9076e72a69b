// SPDX-License-Identifier: Apache-2.0
//
// The page of `mica serve` in a browser: what a user does, what an attacker writes, and the rules of axe-core.
//
//   node tests/clients/page_test.mjs                          with tests/clients/page_stub.py, which it starts
//   node tests/clients/page_test.mjs --program build/release/mica    with `mica serve`, which it starts
//   node tests/clients/page_test.mjs http://127.0.0.1:8080    with a server that runs; --key KEY where it asks
//
//   --out DIR     screenshots, and playwright-core and axe-core from npm (default: build/page_test)
//   CHROMIUM      the browser (default: chromium, chromium-browser or google-chrome of the PATH)
//
// Exit code: 0 all passed, 1 a check failed, 77 skipped, with a line that names what is missing. On Debian,
// apt-get install chromium. Without the stub, checks that need a known answer are skipped by name; those that need
// a server which may be killed are made with --program.

import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url)),
  root = path.resolve(here, '../..');
const words = process.argv.slice(2);
const option = (name, other) => {
  const at = words.indexOf(name);
  return at < 0 ? other : words.splice(at, 2)[1];
};
const out = path.resolve(option('--out', path.join(root, 'build/page_test'))),
  program = option('--program', ''),
  key = option('--key', '');
const given = words[0];
const fixed = !given && !program; // the stub: its answers are known
const skip = text => {
  console.log('skipped: page_test: ' + text);
  process.exit(77);
};

// ---- What it needs
const packages = ['playwright-core@1.65.1', 'axe-core@4.14.1'];
mkdirSync(out, { recursive: true });
if (!existsSync(path.join(out, 'package.json')))
  writeFileSync(path.join(out, 'package.json'), '{"private": true}');
const need = createRequire(path.join(out, 'package.json'));
const load = () => [need('playwright-core'), readFileSync(need.resolve('axe-core/axe.min.js'), 'utf8')];
let chromium, axe;
try {
  [{ chromium }, axe] = load();
} catch {
  try {
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages], {
      cwd: out,
      stdio: 'pipe',
    });
    [{ chromium }, axe] = load();
  } catch (error) {
    skip(
      packages.join(' and ') +
        ' are not installed and npm cannot reach them: ' +
        String(error.message).split('\n')[0],
    );
  }
}
const names = process.env.CHROMIUM
  ? [process.env.CHROMIUM]
  : ['chromium', 'chromium-browser', 'google-chrome'];
const browserPath = names
  .flatMap(name =>
    name.includes('/') ? [name] : process.env.PATH.split(':').map(dir => path.join(dir, name)),
  )
  .find(file => existsSync(file));
if (!browserPath) skip('no browser: none of ' + names.join(', ') + ' was found; CHROMIUM=FILE names one');

// A server that ends with this script: its address and its process.
function start(command, ...options) {
  const child = spawn(command, options, { stdio: ['ignore', 'pipe', 'inherit'] });
  process.on('exit', () => child.kill());
  return new Promise((resolve, reject) => {
    child.once('exit', code => reject(new Error(`${command} ended with ${code}`)));
    child.stdout.once('data', text =>
      resolve({ url: `http://127.0.0.1:${JSON.parse(text).port}`, port: JSON.parse(text).port, child }),
    );
  });
}
const stub = (...options) => start('python3', path.join(here, 'page_stub.py'), ...options);
const fairy = path.join(root, 'examples/models/fairy.gguf'),
  tale = path.join(out, 'tale.gguf'), // the same, but its answers end at a full stop
  endless = path.join(out, 'endless.gguf'); // the same, but its answers do not end by themselves
const serve = (...options) =>
  start(
    program,
    ...['serve', fairy, tale, endless, '-q', '-c', '16384', '--temp', '0', '--chat-template', 'chatml'],
    ...(options.includes('--port') ? options : ['--port', '0', ...options]),
  );
if (program) execFileSync('python3', [path.join(here, 'server.py'), program, tale, endless]);

// ---- Checks
let passed = 0,
  failed = 0;
function check(name, ok, found = '') {
  ok ? passed++ : failed++;
  console.log(
    (ok ? 'ok      ' : 'FAILED  ') + name + (ok || found === '' ? '' : ': ' + JSON.stringify(found)),
  );
}
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
async function until(test, seconds = 60) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(40)) {
    const value = await test();
    if (value) return value;
  }
  return false;
}

const browser = await chromium.launch({
  executablePath: browserPath,
  args: ['--no-sandbox', '--disable-gpu'],
});
const base = given ?? (await (program ? serve() : stub())).url;
const expected = []; // texts of console errors that a check provokes
const problems = []; // all others

async function openPage(address, settings = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...settings });
  const page = await context.newPage();
  page.on('console', message => {
    const text = message.text();
    if (message.type() == 'error' && !expected.some(e => text.includes(e))) problems.push(text);
  });
  page.on('pageerror', error => problems.push(error.message));
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener('securitypolicyviolation', e =>
      window.violations.push(e.violatedDirective + ' ' + e.blockedURI),
    );
  });
  if (key && given) await page.addInitScript(k => sessionStorage.setItem('mica.key', k), key);
  const reply = await page.goto(address);
  await page.waitForSelector('#model option', { state: 'attached' }).catch(() => {});
  return { page, context, reply };
}
const idle = page => until(() => page.locator('#stop').isHidden());
async function send(page, text, wait = true) {
  await page.fill('#text', text);
  await page.press('#text', 'Enter');
  if (wait) await idle(page);
}
const lastText = page => page.locator('.assistant .body').last().innerText();
const violations = page => page.evaluate(() => window.violations);
async function rules(page, name) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ['violations'] }));
  check(
    'axe-core finds nothing: ' + name,
    !found.violations.length,
    found.violations.map(
      v => v.id + ': ' + v.nodes.map(n => n.target + ' ' + (n.any[0]?.message ?? '')).join('; '),
    ),
  );
}

// ---- The reply
const { page, context, reply } = await openPage(base);
const policy = reply.headers()['content-security-policy'] ?? '';
check(
  'the policy forbids everything by default',
  policy.startsWith("default-src 'none'; style-src 'sha256-"),
  policy,
);
check('the policy has no unsafe source', !/unsafe|\*|https?:/.test(policy), policy);
const size = (await reply.body()).length;
check('the page has at most 30,000 bytes', size <= 30000, size);
if (fixed) {
  const lone = execFileSync(
    'cmake',
    [
      '-DPAGE=' + path.join(root, 'examples/run/serve/page.html'),
      '-P',
      path.join(root, 'cmake/mica-page.cmake'),
    ],
    { encoding: 'utf8' },
  ).trim();
  check('CMake and Python compute the same policy', lone == policy, lone);
}
check(
  'the page has a language and a title',
  await page.evaluate(() => document.documentElement.lang == 'en' && document.title.includes('mica')),
);
check('models are listed', (await page.locator('#model option').count()) > 0);
check('the message field has the focus', await page.evaluate(() => document.activeElement.id == 'text'));

// ---- The ledger
await page.waitForSelector('#ledger:not([hidden])');
const used = () => page.locator('#used').innerText();
const idleUsed = await used();
check('the ledger shows bytes', /^[\d.]+ (KiB|MiB|GiB)$/.test(idleUsed), idleUsed);
check('the ledger has accounts', (await page.locator('#accounts tr:not([hidden])').count()) >= 3);
check(
  'bars of accounts stay within the budget line',
  await page.evaluate(() => {
    const line = document.querySelector('#limit').getBoundingClientRect().left;
    return [...document.querySelectorAll('#bar > i:not(.reserved)')].every(
      bar => bar.getBoundingClientRect().right <= line + 4,
    );
  }),
);

// ---- Send; tokens one by one
await page.evaluate(() => {
  window.lengths = new Set();
  window.spoken = [];
  new MutationObserver(() =>
    window.lengths.add(document.querySelector('.assistant .body')?.textContent.length),
  ).observe(document.querySelector('#log'), { subtree: true, childList: true, characterData: true });
  new MutationObserver(() => window.spoken.push(document.querySelector('#voice').textContent)).observe(
    document.querySelector('#voice'),
    { childList: true },
  );
});
const most = program ? '60' : ''; // the bundled model seldom ends an answer by itself
if (program) await page.fill('#max_tokens', '4000');
await send(page, 'Tell me about sheets of mica.', false);
check('an answer can be stopped while it runs', await until(() => page.locator('#stop').isVisible()));
await sleep(1500);
check(
  'the message field is empty and keeps the focus',
  await page.evaluate(() => document.activeElement.id == 'text' && !document.activeElement.value),
);
const moved = await until(async () => (await used()) != idleUsed, 20);
check('the ledger moves while an answer runs', moved, idleUsed);
await idle(page);
const lengths = await page.evaluate(() => [...window.lengths]);
check('tokens appear one by one', lengths.filter(n => n > 0).length >= 4, lengths);
const spoken = await page.evaluate(() => window.spoken);
check(
  'screen readers hear sentences, not tokens',
  spoken.length >= 1 && spoken.length <= 12 && spoken.at(-1).endsWith('End.'),
  spoken,
);
const note = await page.locator('.assistant .small').first().innerText();
check(
  'the answer has its speed and the time to the first token',
  /\d+ tokens · [\d.]+ tokens\/s · first token after [\d.]+ s/.test(note),
  note,
);
check('the answer has its hits of the cache', /prompt from cache: \d+ of \d+ tokens/.test(note), note);
const first = await lastText(page);
await page.fill('#max_tokens', most);

// ---- Retry, versions, edit
await page.getByRole('button', { name: 'Retry message 2' }).click();
await idle(page);
check('a retry keeps the earlier version', await page.getByText('2 of 2', { exact: true }).isVisible());
await page.getByRole('button', { name: 'Earlier version' }).click();
check('the earlier version is as it was', (await lastText(page)) == first);
await page.getByRole('button', { name: 'Edit message 1' }).click();
await page.getByLabel('Text of message 1').fill('Tell me about **books**.');
await page.getByRole('button', { name: 'Send', exact: true }).first().click();
await idle(page);
check(
  'an edited question is asked again',
  (await page.locator('.user .body').innerText()) == 'Tell me about books.',
);
await page.getByRole('button', { name: 'Edit message 2' }).click();
await page.getByLabel('Text of message 2').fill('An answer that a user wrote.');
await page.getByRole('button', { name: 'Save' }).click();
check('an answer can be edited', (await lastText(page)) == 'An answer that a user wrote.');
await page.getByRole('button', { name: 'Edit message 2' }).click();
await page.keyboard.press('Escape');
check('Escape leaves an edit and changes nothing', (await lastText(page)) == 'An answer that a user wrote.');

// ---- Stop
await page.fill('#max_tokens', program ? '12000' : '300');
if (program) await page.selectOption('#model', 'endless');
await send(page, 'long, write four hundred words', false);
await until(async () => (await page.locator('.assistant .body').last().textContent()).length > 5);
await page.keyboard.press('Escape');
check('Escape stops an answer', await until(() => page.locator('#stop').isHidden(), 5));
const cut = await lastText(page);
await sleep(600);
check('a stopped answer stays and does not grow', cut.length > 0 && (await lastText(page)) == cut);
const below = await page.locator('.assistant .small').last().innerText();
check('a stopped answer says so', below.includes('stopped'), below);
if (program) await page.selectOption('#model', 'fairy');
await page.fill('#max_tokens', most);

// ---- What users write stays text
const hostile =
  '<img src=x onerror="window.injected=1"> <script>window.injected=2</script> [x](javascript:window.injected=3) **<b>b</b>**';
await page.fill('#max_tokens', '3');
await send(page, hostile);
await page.fill('#max_tokens', most);
check(
  'HTML of a user is text',
  (await page.locator('.user .body').last().innerText()).includes('<img src=x onerror="window.injected=1">'),
);

// ---- Conversations
await page.fill('#name', 'Sheets');
await page.press('#name', 'Enter');
await page.reload();
check(
  'a reload keeps the history',
  await until(async () => (await page.locator('article').count()) == 6),
  await page.locator('article').count(),
);
check(
  'a reload keeps the name',
  (await page.inputValue('#name')) == 'Sheets' && (await page.title()).startsWith('Sheets'),
);
await page.getByRole('button', { name: 'New conversation' }).click();
check('a new conversation is empty', (await page.locator('article').count()) == 0);
await page.fill('#system', 'Answer in verse.');
await page.fill('#max_tokens', '3');
await send(page, 'Second conversation');
check('two conversations are listed', (await page.locator('#list li').count()) == 2);
const [download] = await Promise.all([
  page.waitForEvent('download'),
  page.getByRole('button', { name: 'Export' }).click(),
]);
const exported = JSON.parse(readFileSync(await download.path(), 'utf8'));
check(
  'a conversation is exported as JSON',
  exported.messages.map(m => m.role).join() == 'system,user,assistant' &&
    download.suggestedFilename() == 'Second-conversation.json',
  exported,
);
await page.getByRole('button', { name: 'Delete' }).click();
check('a conversation is deleted', (await page.locator('#list li').count()) == 1);
await page.getByRole('button', { name: 'Undo' }).click();
check(
  'a deletion is undone',
  (await page.locator('#list li').count()) == 2 && (await page.inputValue('#name')) == 'Second conversation',
);
await page.fill('#max_tokens', most);

// ---- Keyboard alone
const tabs = new Set();
await page.focus('#model');
for (let i = 0; i < 60; i++) {
  tabs.add(
    await page.evaluate(() => document.activeElement.id || document.activeElement.textContent.slice(0, 20)),
  );
  await page.keyboard.press('Tab');
}
const wanted = [
  'model',
  'fresh',
  'name',
  'export',
  'delete',
  'text',
  'send',
  'system',
  'temperature',
  'max_tokens',
];
check(
  'the keyboard reaches everything',
  wanted.every(id => tabs.has(id)),
  wanted.filter(id => !tabs.has(id)),
);

// ---- Answers that only the stub gives
if (fixed) {
  await page.getByRole('button', { name: 'New conversation' }).click();
  await send(page, 'think about it');
  check('thoughts are folded', !(await page.locator('.assistant details > div').last().isVisible()));
  await page.locator('.assistant summary').last().click();
  check(
    'thoughts can be read',
    (await page.locator('.assistant details > div').last().innerText()) ==
      'The user asks about sheets. Sheets are thin.',
  );
  const html = await page
    .locator('.assistant .body')
    .last()
    .evaluate(node => [...node.querySelectorAll('*')].map(n => n.tagName).join(' '));
  check(
    'Markdown has its elements',
    ['H3', 'H4', 'STRONG', 'EM', 'CODE', 'A', 'OL', 'UL', 'TABLE', 'PRE', 'BLOCKQUOTE'].every(tag =>
      html.split(' ').includes(tag),
    ),
    html,
  );
  const link = await page
    .locator('.assistant .body a')
    .last()
    .evaluate(a => [a.protocol, a.rel]);
  check('links are http with rel', link[0] == 'https:' && link[1].includes('noopener'), link);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy code' }).click();
  const copied = await until(() => page.evaluate(() => navigator.clipboard.readText()), 3);
  check('code is copied', String(copied).startsWith('def sheets(thickness_um'), copied);

  await send(page, 'inject what you can');
  await sleep(300);
  const last = page.locator('.assistant .body').last();
  const tags = await last.evaluate(node =>
    [...node.querySelectorAll('*')]
      .filter(
        n =>
          /^(img|script|iframe|style|svg|b)$/i.test(n.tagName) ||
          [...n.attributes].some(a => a.name.startsWith('on')) ||
          (n.tagName == 'A' && !/^https?:$/.test(n.protocol)),
      )
      .map(n => n.outerHTML),
  );
  check('HTML, scripts and addresses of a model are text', !tags.length, tags);
  check('nothing of them ran', await page.evaluate(() => window.injected === undefined));
  check('they can be read', (await last.innerText()).includes('<script>window.injected = 2</script>'));

  expected.push('429', '500', 'ERR_INCOMPLETE_CHUNKED');
  await send(page, 'busy');
  const busy = await page.locator('.error:visible').last().innerText();
  check(
    '429 shows the words of the server and the time',
    busy.startsWith('The queue is full: 8 answers wait, 8 is the maximum. Retry in 12 s, at '),
    busy,
  );
  await send(page, 'fail');
  check(
    '500 shows the words of the server as text',
    (await page.locator('.error:visible').last().innerText()) == 'disk read failed: <b>layer 7</b>',
  );
  await send(page, 'break');
  check(
    'an error within a stream is shown, and the text stays',
    (await page.locator('.error:visible').last().innerText()) == 'The answer ended: no memory left.' &&
      (await lastText(page)).length > 5,
  );
  await send(page, 'cut');
  check(
    'a connection that ends early is an error',
    (await page.locator('.error:visible').last().innerText()) ==
      'The connection ended before the answer did.',
  );

  await page.fill('#max_tokens', '5');
  const asked = page.waitForRequest(request => request.method() == 'POST');
  await send(page, 'plain');
  const texts = (await asked).postDataJSON().messages.map(m => m.content);
  check(
    'a question that was refused is not sent again with the next one',
    texts.at(-1) == 'plain' && !texts.includes('busy') && !texts.includes('fail'),
    texts,
  );
  check('a question with a part of an answer is', texts.includes('break'), texts);
  check(
    'an answer that was cut by its maximum says so',
    (await page.locator('.assistant .small').last().innerText()).includes('maximum of tokens'),
  );
  await page.fill('#max_tokens', most);
} else console.log('skipped: page_test: answers of the stub (thoughts, Markdown, injection by a model, 429, 500)');

// ---- A key
if (!given) {
  expected.push('401');
  const guarded = await openPage(
    (await (program ? serve('--api-key', 'let me in') : stub('--key', 'let me in'))).url,
  );
  check('401 asks for a key', await until(() => guarded.page.locator('#door').isVisible(), 10));
  await rules(guarded.page, 'the field of the key');
  await guarded.page.fill('#key', 'another');
  await guarded.page.press('#key', 'Enter');
  check(
    'a wrong key is said to be wrong, and asked for again',
    await until(
      async () =>
        (await guarded.page.locator('#notice').innerText()) != '' &&
        (await guarded.page.locator('#door').isVisible()),
      10,
    ),
  );
  await guarded.page.fill('#key', 'let me in');
  await guarded.page.press('#key', 'Enter');
  check(
    'the key is used',
    await until(
      async () =>
        (await guarded.page.locator('#model option').count()) > 1 &&
        !(await guarded.page.locator('#door').isVisible()),
      10,
    ),
  );
  check(
    'the key is in the storage of the tab alone',
    await guarded.page.evaluate(
      () =>
        sessionStorage.getItem('mica.key') == 'let me in' &&
        !JSON.stringify(localStorage).includes('let me in'),
    ),
  );
  await guarded.context.close();
}

// ---- What only `mica serve` shows
if (program) {
  const ledger = page => page.evaluate(() => fetch('props').then(reply => reply.json()));
  const { accounts, used_bytes } = (await ledger(page)).ledger;
  const sum = Object.values(accounts).reduce((all, bytes) => all + bytes, 0);
  check('the accounts of the ledger add up', sum == used_bytes, [sum, used_bytes]);

  await page.getByRole('button', { name: 'New conversation' }).click();
  await page.selectOption('#model', 'tale');
  await send(page, 'A story about a fox, please.');
  check('another model answers', (await lastText(page)).length > 0);
  await send(page, 'And one about a hen.');
  const hits = (await page.locator('.assistant .small').last().innerText()).match(
    /prompt from cache: (\d+) of (\d+)/,
  );
  check('the second turn comes from the cache', hits && +hits[1] > 0 && +hits[1] < +hits[2], hits);

  await page.selectOption('#model', 'endless');
  await page.fill('#max_tokens', '12000');
  await send(page, 'A long story.', false);
  await until(async () => (await page.locator('.assistant .body').last().textContent()).length > 5);
  const runs = () =>
    page.evaluate(() => fetch('slots').then(async reply => (await reply.json()).some(s => s.is_processing)));
  check('the server writes the answer', await runs());
  await page.keyboard.press('Escape');
  check('the server ends an answer that the page has stopped', await until(async () => !(await runs()), 3));

  await page.selectOption('#model', 'fairy');
  expected.push('400');
  await page.fill('#max_tokens', most);
  await send(page, 'once upon a time '.repeat(8000));
  const refused = await page.locator('.error:visible').last().innerText();
  check('a prompt that is too long is refused with its numbers', /\d{5}.*16384|16384.*\d{5}/s.test(refused), refused);
  await send(page, 'A story about a crow.');
  check('the conversation goes on after it', (await lastText(page)).length > 5);

  // The server is killed in an answer, and comes back at the same port.
  expected.push('ERR_INCOMPLETE_CHUNKED', 'ERR_CONNECTION', 'ERR_NETWORK', 'ERR_EMPTY_RESPONSE');
  const mortal = await serve();
  const lost = await openPage(mortal.url);
  await lost.page.waitForSelector('#ledger:not([hidden])');
  await lost.page.selectOption('#model', 'endless');
  await lost.page.fill('#max_tokens', '12000');
  await send(lost.page, 'A long story.', false);
  await until(async () => (await lost.page.locator('.assistant .body').last().textContent()).length > 5);
  mortal.child.kill('SIGKILL');
  check(
    'an answer of a server that was killed ends with an error, and its text stays',
    (await until(() => lost.page.locator('#stop').isHidden(), 10)) &&
      (await lost.page.locator('.error:visible').last().innerText()) != '' &&
      (await lastText(lost.page)).length > 5,
  );
  check('no ledger is shown without a server', await until(() => lost.page.locator('#ledger').isHidden(), 10));
  await serve('--port', String(mortal.port));
  check('the ledger is back with the server', await until(() => lost.page.locator('#ledger').isVisible(), 15));
  await lost.page.fill('#max_tokens', '20');
  await lost.page.getByRole('button', { name: 'Retry message 2' }).click();
  await idle(lost.page);
  check('a retry then succeeds', (await lost.page.locator('.error:visible').count()) == 0);
  await lost.context.close();
}

// ---- Colours, widths, rules
const show = async (name, settings, narrow) => {
  const { page, context } = await openPage(base, settings);
  await page.waitForSelector('#ledger:not([hidden])', { state: 'attached' });
  await rules(page, name + ', empty');
  await page.screenshot({ path: path.join(out, name + '-empty.png') });
  await send(page, fixed ? 'think about sheets' : 'Write a short list and a line of code.');
  await rules(page, name);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check('no horizontal scrolling: ' + name, wide <= 0, wide);
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: path.join(out, name + '.png') });
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await page.screenshot({ path: path.join(out, name + '-end.png') });
  await send(page, 'and once more', false);
  await sleep(1800);
  await page.screenshot({ path: path.join(out, name + '-runs.png') });
  await page.keyboard.press('Escape');
  if (narrow) {
    for (const [opener, panel] of [
      ['Memory', 'side'],
      ['Chats', 'chats'],
    ]) {
      await page.getByRole('button', { name: opener, exact: true }).click();
      check(`the panel ${panel} opens: ${name}`, await page.locator('#' + panel).isVisible());
      await rules(page, name + ', ' + panel);
      await page.screenshot({ path: path.join(out, `${name}-${panel}.png`) });
      await page.keyboard.press('Escape');
      check(
        `Escape closes the panel ${panel}: ${name}`,
        await until(() => page.locator('#' + panel).isHidden(), 5),
      );
    }
  }
  check('no violation of the policy: ' + name, !(await violations(page)).length, await violations(page));
  await context.close();
};
await show('light', { colorScheme: 'light' });
await show('dark', { colorScheme: 'dark' });
await show(
  'zoom200',
  { viewport: { width: 720, height: 450 }, colorScheme: 'light', reducedMotion: 'reduce' },
  true,
);
await show('320', { viewport: { width: 320, height: 640 }, colorScheme: 'dark' }, true);

check('no violation of the policy', !(await violations(page)).length, await violations(page));
check('no error on the console', !problems.length, problems);
await browser.close();
console.log(`${passed} passed, ${failed} failed; screenshots in ${out}`);
process.exit(failed ? 1 : 0);
