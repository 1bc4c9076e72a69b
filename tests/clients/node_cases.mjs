// SPDX-License-Identifier: Apache-2.0
//
// Libraries for Node: openai, @anthropic-ai/sdk, ollama, and ai with @ai-sdk/openai-compatible. They are found in the
// folder that is the first argument.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const folder = process.argv[2];
const require = createRequire(folder + '/package.json');
const load = async (name) => await import(pathToFileURL(require.resolve(name)).href);
const versions = JSON.parse(readFileSync(folder + '/package.json', 'utf8')).dependencies;

const OpenAI = (await load('openai')).default;
const Anthropic = (await load('@anthropic-ai/sdk')).default;
const { Ollama } = await load('ollama');
const { generateText, streamText } = await load('ai');
const { createOpenAICompatible } = await load('@ai-sdk/openai-compatible');

const URL_ = process.env.MICA_URL, MODEL = 'sentences', LONG = 'fairy';
const ASK = [{ role: 'user', content: 'Tell me about a king.' }];
const THINGS = ['a fox', 'the sea', 'a witch', 'bread'];
const word_of = (text) => ' ' + text.split(/\s+/).filter((word) => word)[6];

const running = async () => (await (await fetch(URL_ + '/slots')).json()).filter((slot) => slot.state !== 'idle');
const cancelled = async () =>
  Number(/^mica_answers_total\{outcome="cancelled"\} (\S+)/m.exec(await (await fetch(URL_ + '/metrics')).text())[1]);
/// begin() opens a long stream and leaves it. The answer must end by that, long before its last token.
async function leaves(begin) {
  const before = await cancelled(), end = Date.now() + 10000;
  await begin();
  while ((await running()).length > 0 || (await cancelled()) !== before + 1) {
    assert(Date.now() < end, `${(await cancelled()) - before} answers were cancelled`);
    await sleep(10);
  }
}

async function openai(check) {
  const client = new OpenAI({ baseURL: URL_ + '/v1', apiKey: 'none', maxRetries: 0 });
  const chat = (others = {}) => client.chat.completions.create(
    { model: LONG, messages: ASK, temperature: 0, max_tokens: 40, ...others });
  const text = async (others) => (await chat(others)).choices[0].message.content;
  await check('models', async () => {
    const names = [];
    for await (const model of client.models.list()) names.push(model.id);
    assert.deepEqual(names.slice(0, 2), [MODEL, LONG]);
  });
  await check('a chat', async () => {
    const answer = await chat();
    assert.equal(answer.choices[0].finish_reason, 'length');
    assert.equal(answer.usage.completion_tokens, 40);
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + 40);
    assert.equal((await chat({ model: MODEL, max_tokens: undefined })).choices[0].finish_reason, 'stop');
  });
  await check('a chat in chunks', async () => {
    let whole = '', usage;
    for await (const chunk of await chat({ stream: true, stream_options: { include_usage: true } })) {
      whole += chunk.choices[0]?.delta?.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(whole, await text());
    assert.equal(usage.completion_tokens, 40);
  });
  await check('stop', async () => {
    const whole = await text(), word = word_of(whole);
    assert.equal(await text({ stop: ['never written', word] }), whole.slice(0, whole.indexOf(word)));
  });
  await check('logprobs', async () => {
    const choice = (await chat({ logprobs: true, top_logprobs: 2 })).choices[0];
    assert.equal(choice.logprobs.content.length, 40);
    assert.equal(choice.logprobs.content.map((token) => token.token).join(''), choice.message.content);
    assert(choice.logprobs.content.every((token) => token.top_logprobs.length === 2));
  });
  await check('a text, a response', async () => {
    const one = await client.completions.create({ model: LONG, prompt: 'Once', temperature: 0, max_tokens: 9 });
    assert(one.choices[0].text.length > 0);
    const ask = { model: MODEL, input: 'Tell me about a king.', temperature: 0 };
    const answer = await client.responses.create(ask);
    assert.equal(answer.status, 'completed');
    let streamed = '';
    for await (const event of await client.responses.create({ ...ask, stream: true }))
      if (event.type === 'response.output_text.delta') streamed += event.delta;
    assert.equal(streamed, answer.output_text);
  });
  await check('errors', async () => {
    await assert.rejects(chat({ model: 'gpt-4' }), OpenAI.NotFoundError);
    await assert.rejects(chat({ temperature: 'hot' }), { status: 400, param: 'temperature' });
    await assert.rejects(chat({ messages: [{ role: 'user', content: 'word '.repeat(20000) }] }),
                         { status: 400, type: 'exceed_context_size_error' });
    await assert.rejects(chat({ stream: true, max_tokens: 'all' }), { status: 400, param: 'max_tokens' });
  });
  await check('a client leaves', () => leaves(async () => {
    const stream = await chat({ stream: true, max_tokens: 16000, ignore_eos: true });
    let n = 0;
    for await (const chunk of stream) if (++n > 4) break;
  }));
  await check('several at a time', async () => {
    const asks = THINGS.map((what) => ({ messages: [{ role: 'user', content: `Tell me about ${what}.` }] }));
    const alone = [];
    for (const ask of asks) alone.push(await text(ask));
    assert.deepEqual(await Promise.all(asks.map(text)), alone);
  });
}

async function anthropic(check) {
  const client = new Anthropic({ baseURL: URL_, apiKey: 'none', maxRetries: 0 });
  const tale = { model: LONG, messages: ASK, system: 'You tell tales.', max_tokens: 40, temperature: 0 };
  const message = (others = {}) => client.messages.create({ ...tale, ...others });
  const text = async (others) => (await message(others)).content[0].text;
  await check('a message', async () => {
    const answer = await message();
    assert.equal(answer.stop_reason, 'max_tokens');
    assert.equal(answer.usage.output_tokens, 40);
    const ended = await message({ model: MODEL, max_tokens: 5000 });
    assert.deepEqual([ended.stop_reason, ended.stop_sequence], ['end_turn', null]);
  });
  await check('a message in events', async () => {
    const kinds = [];
    let whole = '';
    for await (const event of await message({ stream: true })) {
      if (event.type === 'content_block_delta') whole += event.delta.text;
      else if (event.type !== 'ping') kinds.push(event.type);
    }
    assert.deepEqual(kinds, ['message_start', 'content_block_start', 'content_block_stop', 'message_delta',
                             'message_stop']);
    assert.equal(whole, await text());
  });
  await check('a message by the helper for streams', async () => {
    const final = await client.messages.stream(tale).finalMessage();
    assert.equal(final.usage.output_tokens, 40);
    assert.equal(final.content[0].text, await text());
  });
  await check('stop', async () => {
    const whole = await text(), word = word_of(whole);
    const answer = await message({ stop_sequences: ['never written', word] });
    assert.equal(answer.stop_sequence, word);
    assert.equal(answer.content[0].text, whole.slice(0, whole.indexOf(word)));
  });
  await check('errors', async () => {
    await assert.rejects(message({ model: 'claude-9' }), Anthropic.NotFoundError);
    await assert.rejects(message({ messages: [] }), Anthropic.BadRequestError);
    await assert.rejects(message({ stream: true, top_k: 'all' }), Anthropic.BadRequestError);
  });
  await check('a client leaves', () => leaves(async () => {
    const stream = await message({ stream: true, max_tokens: 16000 });
    for await (const event of stream) if (event.type === 'content_block_delta') break;
  }));
  await check('several at a time', async () => {
    const asks = THINGS.map((what) => ({ messages: [{ role: 'user', content: `Tell me about ${what}.` }] }));
    const alone = [];
    for (const ask of asks) alone.push(await text(ask));
    assert.deepEqual(await Promise.all(asks.map(text)), alone);
  });
}

async function ollama(check) {
  const client = new Ollama({ host: URL_ });
  const chat = (others = {}, options = {}) => client.chat(
    { model: LONG, messages: ASK, ...others, options: { temperature: 0, num_predict: 40, ...options } });
  await check('models', async () => {
    assert.equal((await client.list()).models.length, process.env.MICA_EMBEDDER ? 3 : 2);
    assert.equal((await client.show({ model: LONG })).details.family, 'llama');
  });
  await check('a chat, in parts too', async () => {
    const answer = await chat();
    assert.deepEqual([answer.done, answer.done_reason, answer.eval_count], [true, 'length', 40]);
    let whole = '', last;
    for await (const part of await chat({ stream: true })) whole += part.message.content, last = part;
    assert.equal(whole, answer.message.content);
    assert.equal(last.eval_count, 40);
    assert((await client.generate({ model: LONG, prompt: 'Once', options: { num_predict: 9 } })).response);
  });
  await check('stop', async () => {
    const whole = (await chat()).message.content, word = word_of(whole);
    assert.equal((await chat({}, { stop: [word] })).message.content, whole.slice(0, whole.indexOf(word)));
  });
  await check('errors', async () => {
    await assert.rejects(chat({ model: 'llama3' }), { status_code: 404 });
    await assert.rejects(chat({}, { num_predict: 'all' }), { status_code: 400 });
    await assert.rejects(chat({ messages: [{ role: 'user', content: 'word '.repeat(20000) }] }), { status_code: 400 });
  });
  await check('a client leaves', () => leaves(async () => {
    const parts = await chat({ stream: true }, { num_predict: 16000 });
    let n = 0;
    try {
      for await (const part of parts) if (++n === 5) parts.abort();
    } catch (error) {
      assert.equal(error.name, 'AbortError');
    }
  }));
}

async function ai(check) {
  const mica = createOpenAICompatible({ name: 'mica', baseURL: URL_ + '/v1', includeUsage: true });
  const ask = (others = {}) => (
    { model: mica(LONG), system: 'You tell tales.', prompt: 'Tell me about a king.', temperature: 0, maxRetries: 0,
      maxOutputTokens: 40, ...others });
  await check('a text', async () => {
    const answer = await generateText(ask());
    assert.equal(answer.finishReason, 'length');
    assert.equal(answer.usage.outputTokens, 40);
    assert.equal((await generateText(ask({ model: mica(MODEL), maxOutputTokens: undefined }))).finishReason, 'stop');
  });
  await check('a text in parts', async () => {
    const stream = streamText(ask());
    let whole = '';
    for await (const part of stream.textStream) whole += part;
    assert.equal(whole, (await generateText(ask())).text);
    assert.equal((await stream.usage).outputTokens, 40);
  });
  await check('stop', async () => {
    const whole = (await generateText(ask())).text, word = word_of(whole);
    assert.equal((await generateText(ask({ stopSequences: [word] }))).text, whole.slice(0, whole.indexOf(word)));
  });
  await check('errors', async () => {
    await assert.rejects(generateText(ask({ model: mica('gpt-4') })), { statusCode: 404 });
    await assert.rejects(generateText(ask({ prompt: 'word '.repeat(20000) })), { statusCode: 400 });
  });
  await check('a client leaves', () => leaves(async () => {
    const abort = new AbortController();
    const stream = streamText(ask({ maxOutputTokens: 16000, abortSignal: abort.signal }));
    let n = 0;
    for await (const part of stream.textStream) if (++n === 5) abort.abort();
  }));
}

let failed = 0;
for (const [name, cases] of [['openai', openai], ['@anthropic-ai/sdk', anthropic], ['ollama', ollama], ['ai', ai]]) {
  await cases(async (what, function_) => {
    const title = `${name} ${versions[name]} (Node): ${what}`;
    try {
      await function_();
      console.log(`ok      ${title}`);
    } catch (error) {
      ++failed;
      console.log(`FAILED  ${title}`);
      console.error(error);
    }
  });
}
process.exit(failed > 0 ? 1 : 0);
