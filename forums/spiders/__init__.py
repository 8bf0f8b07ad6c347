"""The two services of a forum crawl: `forum_list` finds new and changed threads, `forum_detail` reads them."""
