CREATE TABLE `checks` (
  `site` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `post_id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `started_at` datetime(6) NOT NULL,
  `finished_at` datetime(6) NOT NULL,
  `mode` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `first_page` int(11) NOT NULL,
  `last_page` int(11) NOT NULL,
  `requests` int(11) NOT NULL,
  `comments` int(11) NOT NULL,
  `total` bigint(20) DEFAULT NULL,
  `whole` tinyint(1) NOT NULL,
  `consistent` tinyint(1) NOT NULL,
  `gone` tinyint(1) NOT NULL,
  `token` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `last_comment_id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `cursor` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `listed` int(11) DEFAULT NULL,
  `short` int(11) NOT NULL,
  `reason` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `whole_at` datetime(6) DEFAULT NULL,
  `gone_at` datetime(6) DEFAULT NULL,
  PRIMARY KEY (`site`,`post_id`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `comments` (
  `site` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `post_id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `parent_id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `author` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `body` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `created_at` datetime(6) DEFAULT NULL,
  `url` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `fetched_at` datetime(6) NOT NULL,
  `first_seen_at` datetime(6) NOT NULL,
  `body_html` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `edited_at` datetime(6) DEFAULT NULL,
  `position` bigint(20) DEFAULT NULL,
  `content_hash` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `changed_at` datetime(6) DEFAULT NULL,
  `deleted_at` datetime(6) DEFAULT NULL,
  `tombstone_at` datetime(6) DEFAULT NULL,
  `version` int(11) NOT NULL DEFAULT 0,
  PRIMARY KEY (`site`,`id`),
  KEY `ix_comments_site_post_id` (`site`,`post_id`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `crawler_runs` (
  `id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `spider` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `by` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `number` int(11) DEFAULT NULL,
  `token` bigint(20) DEFAULT NULL,
  `node` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `pid` bigint(20) NOT NULL,
  `started_at` datetime(6) NOT NULL,
  `told_at` datetime(6) NOT NULL,
  `ended_at` datetime(6) DEFAULT NULL,
  `outcome` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `exit_code` int(11) DEFAULT NULL,
  `reason` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `pages` bigint(20) NOT NULL,
  `scraped` bigint(20) NOT NULL,
  `peak_rss_bytes` bigint(20) NOT NULL,
  PRIMARY KEY (`id`),
  KEY `ix_crawler_runs_started_at` (`started_at`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `event_dead_letters` (
  `output` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `seq` bigint(20) NOT NULL,
  `place` int(11) NOT NULL,
  `failed_at` datetime(6) NOT NULL,
  `reason` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  PRIMARY KEY (`output`,`seq`,`place`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `event_outputs` (
  `name` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `seq` bigint(20) NOT NULL,
  `place` int(11) NOT NULL,
  `told_at` datetime(6) NOT NULL,
  `failures` int(11) NOT NULL,
  `retry_at` datetime(6) DEFAULT NULL,
  `error` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `lost` bigint(20) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `events` (
  `seq` bigint(20) NOT NULL AUTO_INCREMENT,
  `stored_at` datetime(6) NOT NULL,
  `number` int(11) NOT NULL,
  `changes` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  PRIMARY KEY (`seq`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `forums` (
  `site` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `name` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `url` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `parent_id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `threads` bigint(20) DEFAULT NULL,
  `fetched_at` datetime(6) DEFAULT NULL,
  `first_seen_at` datetime(6) NOT NULL,
  PRIMARY KEY (`site`,`id`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `gaps` (
  `site` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `forum_id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `opened_at` datetime(6) NOT NULL,
  `pages` int(11) NOT NULL,
  `newest_at` datetime(6) DEFAULT NULL,
  `oldest_at` datetime(6) DEFAULT NULL,
  `reason` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `closed_at` datetime(6) DEFAULT NULL,
  PRIMARY KEY (`site`,`forum_id`,`opened_at`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `posts` (
  `site` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `forum_id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `title` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `body` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `author` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `created_at` datetime(6) DEFAULT NULL,
  `views` bigint(20) DEFAULT NULL,
  `reply_count` bigint(20) DEFAULT NULL,
  `last_reply_at` datetime(6) DEFAULT NULL,
  `url` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `fetched_at` datetime(6) NOT NULL,
  `first_seen_at` datetime(6) NOT NULL,
  `body_html` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `sticky` tinyint(1) NOT NULL DEFAULT 0,
  `edited_at` datetime(6) DEFAULT NULL,
  `content_hash` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `changed_at` datetime(6) DEFAULT NULL,
  `deleted_at` datetime(6) DEFAULT NULL,
  `tombstone_at` datetime(6) DEFAULT NULL,
  `checked_at` datetime(6) DEFAULT NULL,
  `next_check_at` datetime(6) DEFAULT NULL,
  `version` int(11) NOT NULL DEFAULT 0,
  PRIMARY KEY (`site`,`id`),
  KEY `ix_posts_site_forum_id_last_reply_at` (`site`,`forum_id`,`last_reply_at`),
  KEY `ix_posts_site_next_check_at` (`site`,`next_check_at`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `revisions` (
  `site` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `kind` varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `content_hash` varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `title` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `body` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `body_html` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `author` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `edited_at` datetime(6) DEFAULT NULL,
  `first_fetched_at` datetime(6) NOT NULL,
  `last_fetched_at` datetime(6) NOT NULL,
  PRIMARY KEY (`site`,`kind`,`id`,`content_hash`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `scans` (
  `site` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `forum_id` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `started_at` datetime(6) NOT NULL,
  `finished_at` datetime(6) NOT NULL,
  `pages` int(11) NOT NULL,
  `threads` int(11) NOT NULL,
  `outcome` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `reason` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `mode` varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL DEFAULT 'scan',
  `new` int(11) NOT NULL DEFAULT 0,
  `changed` int(11) NOT NULL DEFAULT 0,
  `stopped` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `newest_at` datetime(6) DEFAULT NULL,
  `oldest_at` datetime(6) DEFAULT NULL,
  PRIMARY KEY (`site`,`forum_id`,`started_at`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `sites` (
  `name` varchar(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  `first_seen_at` datetime(6) NOT NULL,
  `profile` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  `base_url` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `trawl_migrations` (
  `version_num` varchar(32) NOT NULL,
  PRIMARY KEY (`version_num`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
CREATE TABLE `trawl_schema` (
  `id` int(11) NOT NULL,
  `version` int(11) NOT NULL,
  `created_at` datetime(6) NOT NULL,
  `identity` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
INSERT INTO trawl_migrations VALUES ('0004');
