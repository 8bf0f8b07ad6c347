CREATE TABLE checks (
    site text NOT NULL COLLATE pg_catalog."C",
    post_id text NOT NULL COLLATE pg_catalog."C",
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    mode text NOT NULL,
    first_page integer NOT NULL,
    last_page integer NOT NULL,
    requests integer NOT NULL,
    comments integer NOT NULL,
    total bigint,
    whole boolean NOT NULL,
    consistent boolean NOT NULL,
    gone boolean NOT NULL,
    token text,
    last_comment_id text COLLATE pg_catalog."C",
    cursor text,
    listed integer,
    short integer NOT NULL,
    reason text,
    whole_at timestamp with time zone,
    gone_at timestamp with time zone
);
CREATE TABLE comments (
    site text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    post_id text NOT NULL COLLATE pg_catalog."C",
    parent_id text COLLATE pg_catalog."C",
    author text,
    body text NOT NULL,
    created_at timestamp with time zone,
    url text NOT NULL,
    fetched_at timestamp with time zone NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    body_html text,
    edited_at timestamp with time zone,
    "position" bigint,
    content_hash text,
    changed_at timestamp with time zone,
    deleted_at timestamp with time zone,
    tombstone_at timestamp with time zone,
    version integer DEFAULT 0 NOT NULL
);
CREATE TABLE crawler_runs (
    id text NOT NULL COLLATE pg_catalog."C",
    spider text NOT NULL COLLATE pg_catalog."C",
    by text NOT NULL,
    number integer,
    token bigint,
    node text NOT NULL,
    pid bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    told_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    outcome text,
    exit_code integer,
    reason text,
    pages bigint NOT NULL,
    scraped bigint NOT NULL,
    peak_rss_bytes bigint NOT NULL
);
CREATE TABLE event_dead_letters (
    output text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    place integer NOT NULL,
    failed_at timestamp with time zone NOT NULL,
    reason text NOT NULL
);
CREATE TABLE event_outputs (
    name text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    place integer NOT NULL,
    told_at timestamp with time zone NOT NULL,
    failures integer NOT NULL,
    retry_at timestamp with time zone,
    error text,
    lost bigint NOT NULL
);
CREATE TABLE events (
    seq bigint NOT NULL,
    stored_at timestamp with time zone NOT NULL,
    number integer NOT NULL,
    changes text NOT NULL
);
CREATE SEQUENCE events_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE events_seq_seq OWNED BY events.seq;
CREATE TABLE forums (
    site text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    name text,
    url text,
    parent_id text COLLATE pg_catalog."C",
    threads bigint,
    fetched_at timestamp with time zone,
    first_seen_at timestamp with time zone NOT NULL
);
CREATE TABLE gaps (
    site text NOT NULL COLLATE pg_catalog."C",
    forum_id text NOT NULL COLLATE pg_catalog."C",
    opened_at timestamp with time zone NOT NULL,
    pages integer NOT NULL,
    newest_at timestamp with time zone,
    oldest_at timestamp with time zone,
    reason text,
    closed_at timestamp with time zone
);
CREATE TABLE posts (
    site text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    forum_id text NOT NULL COLLATE pg_catalog."C",
    title text NOT NULL,
    body text NOT NULL,
    author text,
    created_at timestamp with time zone,
    views bigint,
    reply_count bigint,
    last_reply_at timestamp with time zone,
    url text NOT NULL,
    fetched_at timestamp with time zone NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    body_html text,
    sticky boolean DEFAULT false NOT NULL,
    edited_at timestamp with time zone,
    content_hash text,
    changed_at timestamp with time zone,
    deleted_at timestamp with time zone,
    tombstone_at timestamp with time zone,
    checked_at timestamp with time zone,
    next_check_at timestamp with time zone,
    version integer DEFAULT 0 NOT NULL
);
CREATE TABLE revisions (
    site text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    content_hash text NOT NULL COLLATE pg_catalog."C",
    title text,
    body text NOT NULL,
    body_html text,
    author text,
    edited_at timestamp with time zone,
    first_fetched_at timestamp with time zone NOT NULL,
    last_fetched_at timestamp with time zone NOT NULL
);
CREATE TABLE scans (
    site text NOT NULL COLLATE pg_catalog."C",
    forum_id text NOT NULL COLLATE pg_catalog."C",
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    pages integer NOT NULL,
    threads integer NOT NULL,
    outcome text NOT NULL,
    reason text,
    mode text DEFAULT 'scan'::text NOT NULL,
    new integer DEFAULT 0 NOT NULL,
    changed integer DEFAULT 0 NOT NULL,
    stopped text,
    newest_at timestamp with time zone,
    oldest_at timestamp with time zone
);
CREATE TABLE sites (
    name text NOT NULL COLLATE pg_catalog."C",
    first_seen_at timestamp with time zone NOT NULL,
    profile text,
    base_url text
);
CREATE TABLE trawl_migrations (
    version_num character varying(32) NOT NULL
);
CREATE TABLE trawl_schema (
    id integer NOT NULL,
    version integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    identity text
);
ALTER TABLE ONLY events ALTER COLUMN seq SET DEFAULT nextval('events_seq_seq'::regclass);
ALTER TABLE ONLY checks
    ADD CONSTRAINT pk_checks PRIMARY KEY (site, post_id);
ALTER TABLE ONLY comments
    ADD CONSTRAINT pk_comments PRIMARY KEY (site, id);
ALTER TABLE ONLY crawler_runs
    ADD CONSTRAINT pk_crawler_runs PRIMARY KEY (id);
ALTER TABLE ONLY event_dead_letters
    ADD CONSTRAINT pk_event_dead_letters PRIMARY KEY (output, seq, place);
ALTER TABLE ONLY event_outputs
    ADD CONSTRAINT pk_event_outputs PRIMARY KEY (name);
ALTER TABLE ONLY events
    ADD CONSTRAINT pk_events PRIMARY KEY (seq);
ALTER TABLE ONLY forums
    ADD CONSTRAINT pk_forums PRIMARY KEY (site, id);
ALTER TABLE ONLY gaps
    ADD CONSTRAINT pk_gaps PRIMARY KEY (site, forum_id, opened_at);
ALTER TABLE ONLY posts
    ADD CONSTRAINT pk_posts PRIMARY KEY (site, id);
ALTER TABLE ONLY revisions
    ADD CONSTRAINT pk_revisions PRIMARY KEY (site, kind, id, content_hash);
ALTER TABLE ONLY scans
    ADD CONSTRAINT pk_scans PRIMARY KEY (site, forum_id, started_at);
ALTER TABLE ONLY sites
    ADD CONSTRAINT pk_sites PRIMARY KEY (name);
ALTER TABLE ONLY trawl_schema
    ADD CONSTRAINT pk_trawl_schema PRIMARY KEY (id);
ALTER TABLE ONLY trawl_migrations
    ADD CONSTRAINT trawl_migrations_pkc PRIMARY KEY (version_num);
CREATE INDEX ix_comments_site_post_id ON comments USING btree (site, post_id);
CREATE INDEX ix_crawler_runs_started_at ON crawler_runs USING btree (started_at);
CREATE INDEX ix_posts_site_forum_id_last_reply_at ON posts USING btree (site, forum_id, last_reply_at);
CREATE INDEX ix_posts_site_next_check_at ON posts USING btree (site, next_check_at) WHERE (next_check_at IS NOT NULL);
INSERT INTO trawl_migrations VALUES ('0004');
