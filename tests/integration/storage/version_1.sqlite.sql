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
    first_seen_at VARCHAR(27) NOT NULL,
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
    first_seen_at VARCHAR(27) NOT NULL,
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
    reason TEXT,
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
    created_at VARCHAR(27) NOT NULL,
    CONSTRAINT pk_trawl_schema PRIMARY KEY (id)
);
