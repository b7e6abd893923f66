"""What the API's tests walk through, each request to the other one of two services over one store.

These depend most on what a process might keep; test_two_workers_soak.py has all of them.
"""

from __future__ import annotations

import pytest
from tests.service.api.test_concurrency import (  # noqa: F401
    test_limits_on_body_depth_and_rate,
    test_requests_with_one_key_at_the_same_time_are_one,
)
from tests.service.api.test_folding import (  # noqa: F401
    client,
    test_a_preview_is_dropped_and_is_no_other_sessions,
    test_a_preview_is_shown_edited_and_committed,
    test_compact_undo_redo,
    test_the_context_is_folded_where_the_policy_says_so,
)
from tests.service.api.test_turns import (  # noqa: F401
    test_a_conversation_of_turns_goes_on_past_its_window,
    test_a_repeated_key_tells_the_turn_again_and_says_nothing_twice,
    test_a_turn_that_was_left_goes_on_under_its_key,
    test_one_turn_at_a_time,
)
from tests.service.served import two_workers  # noqa: F401
from tests.service.test_compaction_item import (  # noqa: F401
    codex,
    place,
    test_a_history_from_before_it_and_an_edited_one_behind_it_are_branches,
    test_it_compacts_again_in_a_tool_loop_and_behind_a_restart,
)
from tests.service.test_gateway import test_an_edited_history_becomes_a_branch  # noqa: F401
from tests.service.test_own_summaries import (  # noqa: F401
    test_a_client_that_compacts_by_itself_goes_on_in_a_child,
    test_a_session_that_the_client_names_is_that_one,
)

pytestmark = pytest.mark.slow


def pytest_generate_tests(metafunc):
    """Both services share a database, whatever store a test is given."""
    if "store" in metafunc.fixturenames:
        metafunc.parametrize("store", ["memory://"])
