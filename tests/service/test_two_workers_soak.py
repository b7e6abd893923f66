"""All of the tests of the API, the gateway and the page, each request to the other one of two services over one store."""

from __future__ import annotations

import pytest
from tests.service.api.conftest import store  # noqa: F401
from tests.service.api.test_concurrency import *  # noqa: F403
from tests.service.api.test_folding import *  # noqa: F403
from tests.service.api.test_sessions import *  # noqa: F403
from tests.service.api.test_turns import *  # noqa: F403
from tests.service.served import two_workers  # noqa: F401
from tests.service.test_gateway import *  # noqa: F403
from tests.service.test_gateway_failures import *  # noqa: F403
from tests.service.test_own_summaries import *  # noqa: F403
from tests.service.web.test_entry import *  # noqa: F403
from tests.service.web.test_fold_pages import *  # noqa: F403
from tests.service.web.test_page_parts import *  # noqa: F403
from tests.service.web.test_pages import *  # noqa: F403
from tests.service.web.test_replay import *  # noqa: F403

# these look into one service: its folders, its processes, its store in memory, what it has open
del test_the_service_takes_its_replays_along  # noqa: F821
del test_only_so_many_at_once_and_so_many_kept  # noqa: F821
del test_the_leaf_of_a_history_is_that_of_what_it_shows  # noqa: F821
del test_a_conversation_in_use_is_found_among_many_that_begin_alike  # noqa: F821

pytestmark = pytest.mark.soak
