// What happens in the small NodeBB, through its own models: `node nodebb_world.js <folder of NodeBB> populate|change`.
//
// Runs beside the server, on the same Redis. NodeBB's own parts are asked for by their place in its folder.
"use strict";

const path = require("path");
const { promisify } = require("util");

const [folder, verb] = process.argv.slice(2);
const own = (name) => require(path.join(folder, name));
const nconf = own("node_modules/nconf");
nconf.file({ file: path.join(folder, "config.json") });
nconf.defaults({ base_dir: folder, themes_path: path.join(folder, "node_modules"), upload_url: "/uploads", relative_path: "", isPrimary: "true", isCluster: "false" });

const WORDS = ["crawl", "redis", "forum", "thread", "lease", "bucket", "river", "stone", "kettle", "lantern", "marble", "violin"];
const BOSS = 1;
let seed = verb === "populate" ? 1 : 2;
let clock;

function random(below) {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return Math.floor((seed / 2147483648) * below);
}
const pick = (things) => things[random(things.length)];

function text(number) {
  const words = Array.from({ length: 5 + random(25) }, () => pick(WORDS)).join(" ");
  const parts = [`Number ${number}: ${words}.`, "**bold** words, 3 < 4 && 5 > 4 in ünïcode 中文", "A last paragraph & no more."];
  return parts.slice(0, 1 + random(3)).join("\n\n");
}

const title = () => pick([
  (a, b) => `How do I ${a} a ${b}?`,
  (a, b) => `<${a}> & ${b}: what's "right"?`,
  (a, b) => `${a} ${b} — ünïcode ✓ 中文`,
  (a, b) => `Re: ${a} of ${b} &amp; co`,
])(pick(WORDS), pick(WORDS));

async function main() {
  const db = own("src/database");
  await promisify(db.init)();
  const meta = own("src/meta");
  await promisify(meta.configs.init)();
  Object.assign(meta.config, { postDelay: 0, initialPostDelay: 0, newbiePostDelay: 0 });
  const [topics, posts, categories, user] = ["topics", "posts", "categories", "user"].map((name) => own(`src/${name}`));
  const get = promisify(db.getSortedSetRange);
  const topicTids = async () => (await get("topics:tid", 0, -1));
  const world = {
    post: async (tid, uid, toPid) => (await promisify(topics.reply)({ tid, uid, toPid, content: text(++clock), timestamp: 1.75e12 + clock * 6e5 })),
    topic: async (cid, uid, replies) => {
      const made = await promisify(topics.post)({ cid, uid, title: title(), content: text(++clock), timestamp: 1.75e12 + clock * 6e5, tags: [] });
      const pids = [];
      for (let n = 0; n < replies; n++) pids.push((await world.post(made.topicData.tid, pick(world.users), pids.length && random(2) ? pick(pids) : undefined)).pid);
      return made.topicData.tid;
    },
    edit: async (pid, changed) => promisify(posts.edit)({ pid, uid: BOSS, content: `${await promisify(posts.getPostField)(pid, "content")}\n\nEdited.`, ...changed }),
    remove: (pid) => promisify(posts.tools.delete)(BOSS, pid),
    purge: (pid) => promisify(posts.purge)(pid, BOSS),
    replies: (tid) => get(`tid:${tid}:posts`, 0, -1),
  };
  clock = parseInt(await promisify(db.getObjectField)("global", "nextPid"), 10) || 0;

  if (verb === "populate") {
    for (let n = 0; n < 8; n++) await promisify(user.create)({ username: `Member${n}`, email: `m${n}@example.com` });
    await promisify(categories.create)({ name: "A child & more", parentCid: 2 });
  }
  world.users = (await get("users:joindate", 0, -1)).map(Number);
  const cids = (await get("categories:cid", 0, -1)).map(Number).filter((cid) => cid !== 1); // 1: only for announcements

  if (verb === "populate") {
    await promisify(topics.tools.purge)(1, BOSS); // NodeBB's own welcome
    const tids = [];
    for (let n = 0; n < 220; n++) tids.push(await world.topic(pick(cids), pick(world.users), n % 40 === 0 ? 60 : pick([0, 0, 1, 2, 3, 5, 8])));
    for (const tid of tids.slice(10, 14)) await promisify(topics.tools.pin)(tid, BOSS);
    for (const tid of tids.slice(20, 23)) await promisify(topics.tools.delete)(tid, BOSS);
    await promisify(topics.tools.purge)(tids[30], BOSS);
    await promisify(topics.tools.move)(tids[31], cids[cids.length - 1], BOSS);
    for (const tid of tids.slice(40, 60)) {
      for (const pid of (await world.replies(tid)).slice(0, 3)) await pick([world.edit, world.remove, world.purge])(pid);
    }
  } else {
    const deleted = await Promise.all((await topicTids()).map((tid) => promisify(topics.getTopicField)(tid, "deleted")));
    const tids = (await topicTids()).filter((tid, index) => Number(deleted[index]) !== 1);
    const counts = await Promise.all(tids.map((tid) => promisify(topics.getTopicField)(tid, "postcount")));
    const long = tids.filter((tid, index) => Number(counts[index]) > 50);
    for (let n = 0; n < 12; n++) await world.topic(pick(cids), pick(world.users), random(5));
    for (const tid of [...tids.slice(5, 25), ...long.slice(0, 3)]) {
      for (let n = pick([1, 1, 2, 30]); n > 0; n--) await world.post(tid, pick(world.users));
    }
    for (const tid of [...tids.slice(70, 85), ...long.slice(3)]) {
      const pids = await world.replies(tid);
      await world.edit(await promisify(topics.getTopicField)(tid, "mainPid"), { title: "Another title <b>that</b> was changed" });
      for (let n = 0; n < pids.length; n += 3) await pick([world.edit, world.remove, world.purge])(pids[n]);
    }
    for (const tid of tids.slice(90, 93)) await promisify(topics.tools.delete)(tid, BOSS);
    for (const tid of tids.slice(95, 97)) await promisify(topics.tools.purge)(tid, BOSS);
  }
  process.stdout.write("\nnull\n");
}

main().then(() => process.exit(0), (error) => {
  process.stderr.write(`${error && error.stack || error}\n`);
  process.exit(1);
});
