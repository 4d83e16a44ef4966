"""The scenario `multicast`: its populations, and that what is measured is right."""

from pathlib import Path

import numpy as np
import pytest

from nightwire.benchmarks import Context, Kind, Size
from nightwire.benchmarks.scenarios.multicast.matching import Inserting, Matching, scan, scan_roots
from nightwire.benchmarks.scenarios.multicast.population import PASSED, events, subscriptions, tightened
from nightwire.benchmarks.scenarios.multicast.scenario import MulticastScenario
from nightwire.benchmarks.scenarios.multicast.sources import RARE, REJECTED, Schemas, mapping, sample
from nightwire.core.channels.judging import ChannelJudges
from nightwire.filters.language.subscriptions import Matcher, Roots, covers
from nightwire.schemas import SIM_ALERT_ID
from nightwire.schemas.wire import frame


def test_a_subscription_passes_three_events_of_a_hundred() -> None:
    of, given = subscriptions(2_000), events(300)
    passed = [len(scan(of, given, at)) for at in range(300)]
    assert np.mean(passed) == pytest.approx(PASSED * len(of), rel=0.15)


def test_matcher_and_scan_pass_the_same() -> None:
    of, given, matcher = subscriptions(3_000, seed=5), events(200, seed=6), Matcher()
    matcher.insert_many(enumerate(of.forms()))
    found = matcher.match(given.table())
    assert all(found.keys(at) == scan(of, given, at).tolist() for at in range(200))


def test_roots_of_tightened_templates_are_templates_and_cover_what_a_scan_finds() -> None:
    of, roots = tightened(400, 20), Roots()
    forms = [*of.forms()]
    for key, form in enumerate(forms):
        roots.insert(key, form)
        covering = [one for one in range(key) if covers(forms[one], form)]
        assert covering == scan_roots(of, key).tolist()
    assert {*roots} <= {*range(20)}


def test_all_figures_are_measured(tmp_path: Path) -> None:
    scenario = MulticastScenario()
    context = Context(tmp_path, Size(alerts=1_000, pairs=1, rate=1.0))
    matching, inserting, *network = scenario.experiments(context)
    assert isinstance(matching, Matching)
    assert isinstance(inserting, Inserting)
    matching.prepare()
    figures = matching.run_once(Kind.SUBJECT)
    assert figures.keys() == {"matched_1000_per_s", "passed_by_1000"}
    assert matching.run_once(Kind.BASELINE).keys() == {"matched_1000_per_s"}
    matching.tear_down()
    assert figures.keys() <= {figure.name for figure in scenario.figures}
    assert {one.name for one in network} >= {"many", "burst", "killed"}
    scenario.tear_down()


def test_channels_of_a_source_reject_what_their_figures_say() -> None:
    values = [frame(SIM_ALERT_ID, Schemas.known.encode(one)) for one in sample()]
    shares = (*REJECTED, RARE)
    passed = ChannelJudges([mapping(share) for share in shares], "sim", Schemas()).judge(values)
    assert [100 - 100 * len(one) / len(values) for one in passed] == [*shares]
    assert 1_000 < len(values[0]) < 2_000


@pytest.mark.proof
def test_ten_thousand_subscriptions_that_tighten_two_hundred_have_as_few_roots() -> None:
    inserting = Inserting()
    inserting.prepare()
    figures = inserting.run_once(Kind.SUBJECT)
    assert 0.01 < figures["roots_share"] <= 0.02
    assert inserting.run_once(Kind.BASELINE).keys() == {"insert_p99_ms"}
    assert figures.keys() <= {figure.name for figure in MulticastScenario().figures}
