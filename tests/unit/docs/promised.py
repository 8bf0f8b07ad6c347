"""The tests of those sentences of docs/guarantees.md and docs/security.md that name none: by the sentence's beginning, or that of
a row's first cell. `test_promises.py` reads them; a sentence that names its test needs no line here.
"""

from __future__ import annotations

_DEATHS = ("tests/faults/test_deaths.py::test_the_fleet_is_whole_again_and_nothing_is_lost_after",)
_CHAOS = ("tests/faults/test_chaos.py::test_whatever_dies_the_whole_forum_is_stored_once_and_nobody_is_left",)
_EXCHANGE, _SLOTS, _LEAVING = (
    "tests/lua/test_exchange.py::",
    "tests/lua/test_slots.py::",
    "tests/unit/redis_components/frontier/test_leaving.py::",
)
_ROLES = "tests/attacks/test_acl_roles.py::"
_REFUSED = (f"{_ROLES}test_no_role_may_do_what_no_process_needs_and_readers_change_nothing",)
_USERS_FLEET = (f"{_ROLES}test_a_fleet_whose_processes_have_a_user_each_comes_up_scales_and_is_seen", *_REFUSED)
_OF_A_SERVICE = f"{_ROLES}test_a_services_own_user_is_refused_every_key_of_another"
_FORGED = ("tests/attacks/test_signed_messages.py::test_forged_messages_are_set_aside_signed_ones_run_and_keys_are_rotated",)
_SIGNING = "tests/unit/redis_components/server/test_signing.py::"
_FOREIGN = (f"{_SIGNING}test_a_service_a_job_and_a_version_that_somebody_wrote_past_the_fleet_is_left_out_and_named",)
_PLACES = (
    "tests/unit/forum_reader/definition/test_origins.py::test_one_place_in_two_spellings",
    "tests/unit/forum_reader/definition/test_origins.py::test_another_place_sees_no_secret",
)
_AUDIT = "tests/integration/test_audit.py::"
_SUPPLY = "tests/unit/deploy/test_supply_chain.py::"
_PRIVATE = "tests/attacks/test_private_addresses.py::"

TESTS: dict[str, dict[str, tuple[str, ...]]] = {
    "guarantees.md": {
        "Each task may come twice": (
            "tests/integration/test_seeding.py::test_two_beats_at_once_seed_each_forum_once",
            "tests/unit/workers/state/test_registry.py::test_a_launch_is_marked_once_until_it_arrives_or_runs_out",
            f"{_SLOTS}test_a_free_slot_is_acquired_and_a_held_one_is_not",
            "tests/integration/storage/test_writer.py::test_a_second_writer_returns_at_once",
            "tests/integration/storage/test_writer.py::test_a_stream_that_is_written_twice_counts_twice_and_is_stored_once",
        ),
        "After any death the fleet returns to its size": _DEATHS,
        "No two crawlers ever work in one slot": _DEATHS,
        "a crawler is killed": _DEATHS,
        "a crawler stands still (SIGSTOP)": _DEATHS,
        "a reactor hangs |": _DEATHS,
        "a crawler, with the processes that it started (a browser), grows over its soft memory limit": (
            "tests/integration/test_supervisor_lives.py::test_a_crawler_over_its_soft_memory_limit_finishes_its_pages_and_is_replaced",
        ),
        "over its hard one": (
            "tests/integration/test_supervisor_lives.py::test_a_crawler_over_its_hard_memory_limit_is_ended_at_once",
        ),
        "a crawler ends with 1 at its start": (
            "tests/integration/test_supervisor_lives.py::test_a_crawler_that_dies_again_and_again_is_given_up_with_its_last_words",
        ),
        "a pool child that supervises": _DEATHS,
        "the same while the crawler stands still": _DEATHS,
        "a worker's main process": (
            *_DEATHS,
            "tests/integration/test_pool_parent.py::test_a_process_of_the_pool_whose_worker_is_gone_ends",
        ),
        "SIGTERM or SIGQUIT of a worker": _DEATHS,
        "a whole node": _DEATHS,
        "a node stands still and comes back": _DEATHS,
        "the beat that leads |": _DEATHS,
        "the key of a slot or of beat's lock is deleted": _DEATHS,
        "Redis is away |": _DEATHS,
        "Ten minutes of random deaths": (*_CHAOS, "tests/faults/test_chaos.py::test_the_same_seed_gives_the_same_plan"),
        "People edit, delete and move things": _CHAOS,
        "A consumer group reads the": (
            *_CHAOS,
            "tests/faults/test_chaos.py::test_the_judge_of_events_finds_what_differs_from_the_record",
        ),
        "What was replaced or deleted before anybody": (
            "tests/faults/test_chaos.py::test_a_change_that_was_taken_back_before_anybody_read_it_is_no_fault",
        ),
        "- **Dedupe and store are one step.**": (
            "tests/faults/test_exchange_properties.py::test_no_request_and_no_item_is_lost_or_leased_twice_in_any_interleaving",
            f"{_EXCHANGE}test_a_new_request_is_stored_once_and_leased_to_one_owner",
        ),
        "- **A request is acked when Scrapy is done": (
            f"{_EXCHANGE}test_acks_never_travel_before_the_children",
            "tests/faults/test_frontier_holes.py::test_a_burial_does_not_travel_before_the_items_of_its_page",
        ),
        "- **The owner of a lease is the process.**": (
            "tests/faults/test_frontier_holes.py::test_a_process_that_is_busy_for_longer_than_its_time_stays_alive",
            f"{_EXCHANGE}test_leases_of_a_dead_owner_are_reclaimed_by_another_one",
        ),
        "- **Every exchange has a number**": (f"{_EXCHANGE}test_an_exchange_that_is_sent_again_is_applied_once",),
        "An owner that Redis does not know": (
            f"{_EXCHANGE}test_an_owner_taken_for_dead_learns_it_and_its_acks_do_not_count",
            f"{_EXCHANGE}test_redis_with_an_older_state_gets_the_last_writes_again",
        ),
        "- **A slot has one holder**": (
            f"{_SLOTS}test_tokens_rise_with_every_holder",
            f"{_SLOTS}test_renewing_keeps_the_slot_and_stores_the_record_with_the_servers_time",
        ),
        "Who shows an older token": (f"{_SLOTS}test_a_late_holder_is_fenced_by_a_newer_token",),
        "A slot whose key is deleted": (
            f"{_SLOTS}test_a_slot_whose_key_was_deleted_is_not_given_away_while_its_holder_is_heard",
        ),
        "- **A journal** of the last 5 s": (f"{_EXCHANGE}test_redis_with_an_older_state_gets_the_last_writes_again",),
        "What Redis had when it fenced a process": (
            f"{_EXCHANGE}test_redis_that_is_older_than_when_it_fenced_a_process_gets_each_write_again_once",
            f"{_EXCHANGE}test_redis_that_comes_back_older_before_it_knows_the_new_name_of_a_process_gets_each_write_again_once",
        ),
        "A process stays until what it wrote is safe": (
            f"{_LEAVING}test_a_process_stays_until_its_last_write_is_on_the_disk",
            "tests/faults/test_failover.py::test_who_leaves_stays_until_the_replica_has_its_last_word",
        ),
    },
    "security.md": {
        "A *place* is scheme, host and port.": _PLACES,
        "As in browsers, `http` and `https`": _PLACES,
        "Who owns the name of a site": (
            f"{_PRIVATE}test_a_name_that_is_public_first_and_private_then_is_looked_at_each_time_and_used_as_it_was_looked_at",
        ),
        "Crawlers, probes and `trawl sites` look at the address": (
            f"{_PRIVATE}test_a_name_that_resolves_to_a_private_address_is_not_connected_to",
            f"{_PRIVATE}test_a_name_that_is_public_first_and_private_then_is_looked_at_each_time_and_used_as_it_was_looked_at",
            f"{_PRIVATE}test_a_probe_reaches_no_private_name",
            f"{_PRIVATE}test_a_new_site_is_not_looked_at_by_a_private_name_nor_where_its_page_leads",
        ),
        "`trawl config acl` prints a Redis user": (
            f"{_ROLES}test_the_users_that_the_command_prints_can_log_in_with_the_passwords_of_the_file",
            "tests/unit/deploy/test_compose_additions.py::test_users_are_made_once_and_only_their_owner_reads_the_passwords",
        ),
        "A process gets its user by": _USERS_FLEET,
        "Users need a namespace": (f"{_ROLES}test_the_users_that_the_command_prints_can_log_in_with_the_passwords_of_the_file",),
        "In Compose `deploy/new-users.sh`": (
            "tests/unit/deploy/test_compose_additions.py::test_users_are_made_once_and_only_their_owner_reads_the_passwords",
            "tests/unit/deploy/test_compose_additions.py::"
            "test_with_users_each_process_has_its_url_from_a_secret_and_redis_is_the_same_but_for_the_password",
            "tests/unit/deploy/test_manifests.py::test_the_users_stack_is_made_from_its_compose_file",
            "tests/unit/deploy/test_manifests.py::test_with_users_each_pod_has_the_url_that_it_has_in_compose",
        ),
        "`crawler` |": (f"{_ROLES}test_a_crawler_with_its_own_user_crawls_a_forum_to_the_end", *_REFUSED),
        "`worker` |": _USERS_FLEET,
        "`beat` |": _USERS_FLEET,
        "`exporter`, `cli-read` |": _USERS_FLEET,
        "`flower` |": _REFUSED,
        "`cli-admin` |": _USERS_FLEET,
        "`crawler-books` reads and writes": (_OF_A_SERVICE,),
        "Of a service that it feeds": (_OF_A_SERVICE,),
        "A worker whose TRAWL_REDIS_USERS": _USERS_FLEET,
        "No user has FLUSHALL": _REFUSED,
        "A script without end stops Redis": (
            f"{_ROLES}test_a_script_without_end_of_one_user_is_ended_by_the_administrator_alone",
        ),
        "A namespace of a fleet has no colon": (
            "tests/integration/test_namespace.py::test_a_fleet_does_not_lie_within_the_keys_of_another",
        ),
        "With `TRAWL_SIGNING_KEY_FILE` set": (*_FORGED, *_FOREIGN),
        "It is off until the variable names a file": (
            f"{_SIGNING}test_without_keys_nothing_is_signed",
            "tests/unit/deploy/test_manifests.py::test_with_users_each_pod_has_the_url_that_it_has_in_compose",
        ),
        "Each process that sends or runs tasks needs the file": _FORGED,
        "**Changing keys.**": (f"{_SIGNING}test_the_first_key_signs_each_is_accepted_and_the_file_is_read_again",),
        "Write the new key as the *second* line": _FORGED,
        "The same holds for turning it on": _FORGED,
        "**Messages from before**": _FORGED,
        "`trawl dead messages` shows them": _FORGED,
        "Celery's queues and remote control |": (*_REFUSED, *_FORGED),
        "the schedule, declared services": (*_REFUSED, *_FOREIGN),
        "sizes, pauses, limits, drained nodes": _REFUSED,
        "queues of crawls, items, dead letters": (f"{_ROLES}test_a_crawler_with_its_own_user_crawls_a_forum_to_the_end",),
        "results, events for Flower": ("tests/attacks/test_messages.py::test_garbage_in_the_queue_of_replies_is_left_out",),
        "- Arguments and settings of a crawler": ("tests/attacks/test_marked_secrets.py::test_a_secret_is_shown_by_nobody",),
        "`trawl audit [--json]` shows who": (
            f"{_AUDIT}test_who_changed_what_is_kept_and_a_refused_attempt_too",
            f"{_AUDIT}test_what_flower_tells_a_worker_is_in_the_audit",
            f"{_AUDIT}test_every_changing_command_exists",
            *_USERS_FLEET,
        ),
        "Each is an event in the database": (
            "tests/integration/storage/test_fleet_notes.py::"
            "test_acts_and_breakers_become_events_once_from_when_the_database_knows_the_fleet",
        ),
        "Redis keeps about the last 10,000 acts": (f"{_AUDIT}test_what_is_kept_of_the_audit_is_bounded",),
        "Passwords in URLs, and values": (f"{_AUDIT}test_secrets_are_masked_and_lines_stay_lines",),
        "- `constraints.txt` pins every version.": (
            f"{_SUPPLY}test_each_locked_package_has_its_pin_and_a_hash_and_each_dependency_is_locked",
        ),
        "`deploy/locked.txt` (`make lock`) holds": (
            f"{_SUPPLY}test_each_locked_package_has_its_pin_and_a_hash_and_each_dependency_is_locked",
            "tests/unit/deploy/test_install.py::test_want_of_a_network_is_said_in_one_line",
            f"{_SUPPLY}test_the_image_installs_what_is_locked",
        ),
        "Where that is not possible": ("tests/unit/deploy/test_install.py::test_want_of_a_network_is_said_in_one_line",),
        "- `make licences` refuses": (
            f"{_SUPPLY}test_each_installed_package_has_a_licence_that_is_accepted",
            f"{_SUPPLY}test_another_licence_is_named_with_its_package",
        ),
        "- `make sbom` writes": (
            f"{_SUPPLY}test_the_list_of_packages_is_of_this_environment",
            f"{_SUPPLY}test_nothing_is_called_safe_that_nobody_could_be_asked_about",
        ),
        "- `make wheels` builds": (f"{_SUPPLY}test_a_wheel_packed_at_another_time_by_another_user_is_the_same",),
    },
}

EXPLAINED = (
    "What Trawl promises when something dies",
    "The same faults in long form",
    "A fleet that follows the same forum for ten minutes",
    "What it costs to watch over crawlers",
    "Titles, names and reasons come from pages",
    "Each row is an attack in `tests/attacks/`.",
    "What an attacker can do to the fleet",
    "Each sentence is backed by an attack",
    "What is not on this page is not promised.",
    "What protects what:",
    "**Without signing**, who can write",
)
"""Sentences that say what the page is, where a figure is, or what is not promised."""
