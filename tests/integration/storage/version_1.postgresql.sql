CREATE TABLE posts (
    site TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    forum_id TEXT COLLATE "C" NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    author TEXT,
    created_at TIMESTAMP WITH TIME ZONE,
    views BIGINT,
    reply_count BIGINT,
    last_reply_at TIMESTAMP WITH TIME ZONE,
    url TEXT NOT NULL,
    fetched_at TIMESTAMP WITH TIME ZONE NOT NULL,
    first_seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_posts PRIMARY KEY (site, id)
);

CREATE INDEX ix_posts_site_forum_id_last_reply_at ON posts (site, forum_id, last_reply_at);

CREATE TABLE comments (
    site TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    post_id TEXT COLLATE "C" NOT NULL,
    parent_id TEXT COLLATE "C",
    author TEXT,
    body TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE,
    url TEXT NOT NULL,
    fetched_at TIMESTAMP WITH TIME ZONE NOT NULL,
    first_seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_comments PRIMARY KEY (site, id)
);

CREATE INDEX ix_comments_site_post_id ON comments (site, post_id);

CREATE TABLE scans (
    site TEXT COLLATE "C" NOT NULL,
    forum_id TEXT COLLATE "C" NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    finished_at TIMESTAMP WITH TIME ZONE NOT NULL,
    pages INTEGER NOT NULL,
    threads INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT,
    CONSTRAINT pk_scans PRIMARY KEY (site, forum_id, started_at)
);

CREATE TABLE crawler_runs (
    id TEXT COLLATE "C" NOT NULL,
    spider TEXT COLLATE "C" NOT NULL,
    by TEXT NOT NULL,
    number INTEGER,
    token BIGINT,
    node TEXT NOT NULL,
    pid BIGINT NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE NOT NULL,
    told_at TIMESTAMP WITH TIME ZONE NOT NULL,
    ended_at TIMESTAMP WITH TIME ZONE,
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
    created_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT pk_trawl_schema PRIMARY KEY (id)
);
