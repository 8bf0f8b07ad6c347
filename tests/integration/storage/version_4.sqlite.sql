CREATE TABLE trawl_migrations (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT trawl_migrations_pkc PRIMARY KEY (version_num)
);
CREATE TABLE posts (
    site TEXT NOT NULL,
    id TEXT NOT NULL,
    forum_id TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    author TEXT,
    created_at VARCHAR(27),
    views BIGINT,
    reply_count BIGINT,
    last_reply_at VARCHAR(27),
    url TEXT NOT NULL,
    fetched_at VARCHAR(27) NOT NULL,
    first_seen_at VARCHAR(27) NOT NULL, body_html TEXT, sticky BOOLEAN DEFAULT 0 NOT NULL, edited_at VARCHAR(27), content_hash TEXT, changed_at VARCHAR(27), deleted_at VARCHAR(27), tombstone_at VARCHAR(27), checked_at VARCHAR(27), next_check_at VARCHAR(27), version INTEGER DEFAULT 0 NOT NULL,
    CONSTRAINT pk_posts PRIMARY KEY (site, id)
);
CREATE INDEX ix_posts_site_forum_id_last_reply_at ON posts (site, forum_id, last_reply_at);
CREATE TABLE comments (
    site TEXT NOT NULL,
    id TEXT NOT NULL,
    post_id TEXT NOT NULL,
    parent_id TEXT,
    author TEXT,
    body TEXT NOT NULL,
    created_at VARCHAR(27),
    url TEXT NOT NULL,
    fetched_at VARCHAR(27) NOT NULL,
    first_seen_at VARCHAR(27) NOT NULL, body_html TEXT, edited_at VARCHAR(27), position BIGINT, content_hash TEXT, changed_at VARCHAR(27), deleted_at VARCHAR(27), tombstone_at VARCHAR(27), version INTEGER DEFAULT 0 NOT NULL,
    CONSTRAINT pk_comments PRIMARY KEY (site, id)
);
CREATE INDEX ix_comments_site_post_id ON comments (site, post_id);
CREATE TABLE scans (
    site TEXT NOT NULL,
    forum_id TEXT NOT NULL,
    started_at VARCHAR(27) NOT NULL,
    finished_at VARCHAR(27) NOT NULL,
    pages INTEGER NOT NULL,
    threads INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT, mode TEXT DEFAULT 'scan' NOT NULL, new INTEGER DEFAULT 0 NOT NULL, changed INTEGER DEFAULT 0 NOT NULL, stopped TEXT, newest_at VARCHAR(27), oldest_at VARCHAR(27),
    CONSTRAINT pk_scans PRIMARY KEY (site, forum_id, started_at)
);
CREATE TABLE crawler_runs (
    id TEXT NOT NULL,
    spider TEXT NOT NULL,
    "by" TEXT NOT NULL,
    number INTEGER,
    token BIGINT,
    node TEXT NOT NULL,
    pid BIGINT NOT NULL,
    started_at VARCHAR(27) NOT NULL,
    told_at VARCHAR(27) NOT NULL,
    ended_at VARCHAR(27),
    outcome TEXT,
    exit_code INTEGER,
    reason TEXT,
    pages BIGINT NOT NULL,
    scraped BIGINT NOT NULL,
    peak_rss_bytes BIGINT NOT NULL,
    CONSTRAINT pk_crawler_runs PRIMARY KEY (id)
);
CREATE INDEX ix_crawler_runs_started_at ON crawler_runs (started_at);
CREATE TABLE trawl_schema (
    id INTEGER NOT NULL,
    version INTEGER NOT NULL,
    created_at VARCHAR(27) NOT NULL, identity TEXT,
    CONSTRAINT pk_trawl_schema PRIMARY KEY (id)
);
CREATE TABLE sites (
    name TEXT NOT NULL,
    first_seen_at VARCHAR(27) NOT NULL,
    profile TEXT,
    base_url TEXT,
    CONSTRAINT pk_sites PRIMARY KEY (name)
);
CREATE TABLE forums (
    site TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT,
    url TEXT,
    parent_id TEXT,
    threads BIGINT,
    fetched_at VARCHAR(27),
    first_seen_at VARCHAR(27) NOT NULL,
    CONSTRAINT pk_forums PRIMARY KEY (site, id)
);
CREATE TABLE revisions (
    site TEXT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    title TEXT,
    body TEXT NOT NULL,
    body_html TEXT,
    author TEXT,
    edited_at VARCHAR(27),
    first_fetched_at VARCHAR(27) NOT NULL,
    last_fetched_at VARCHAR(27) NOT NULL,
    CONSTRAINT pk_revisions PRIMARY KEY (site, kind, id, content_hash)
);
CREATE TABLE checks (
    site TEXT NOT NULL,
    post_id TEXT NOT NULL,
    started_at VARCHAR(27) NOT NULL,
    finished_at VARCHAR(27) NOT NULL,
    mode TEXT NOT NULL,
    first_page INTEGER NOT NULL,
    last_page INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    comments INTEGER NOT NULL,
    total BIGINT,
    whole BOOLEAN NOT NULL,
    consistent BOOLEAN NOT NULL,
    gone BOOLEAN NOT NULL,
    token TEXT,
    last_comment_id TEXT,
    cursor TEXT,
    listed INTEGER,
    short INTEGER NOT NULL,
    reason TEXT,
    whole_at VARCHAR(27),
    gone_at VARCHAR(27),
    CONSTRAINT pk_checks PRIMARY KEY (site, post_id)
);
CREATE TABLE gaps (
    site TEXT NOT NULL,
    forum_id TEXT NOT NULL,
    opened_at VARCHAR(27) NOT NULL,
    pages INTEGER NOT NULL,
    newest_at VARCHAR(27),
    oldest_at VARCHAR(27),
    reason TEXT,
    closed_at VARCHAR(27),
    CONSTRAINT pk_gaps PRIMARY KEY (site, forum_id, opened_at)
);
CREATE INDEX ix_posts_site_next_check_at ON posts (site, next_check_at) WHERE next_check_at IS NOT NULL;
CREATE TABLE events (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    stored_at VARCHAR(27) NOT NULL,
    number INTEGER NOT NULL,
    changes TEXT NOT NULL
);
CREATE TABLE event_outputs (
    name TEXT NOT NULL,
    seq BIGINT NOT NULL,
    place INTEGER NOT NULL,
    told_at VARCHAR(27) NOT NULL,
    failures INTEGER NOT NULL,
    retry_at VARCHAR(27),
    error TEXT,
    lost BIGINT NOT NULL,
    CONSTRAINT pk_event_outputs PRIMARY KEY (name)
);
CREATE TABLE event_dead_letters (
    output TEXT NOT NULL,
    seq BIGINT NOT NULL,
    place INTEGER NOT NULL,
    failed_at VARCHAR(27) NOT NULL,
    reason TEXT NOT NULL,
    CONSTRAINT pk_event_dead_letters PRIMARY KEY (output, seq, place)
);
INSERT INTO trawl_migrations VALUES ('0004');
