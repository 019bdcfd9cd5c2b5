"""docs/guides/operate.md says what the code measures, what the template watches and what is mailed."""

from trainmaster.core.monitoring.metrics import METRICS, Metric
from trainmaster.core.outbox.messages import NoticeKind
from trainmaster.core.outbox.render import MAILED

from tests.markdown import codes, table, text_of
from tests.template.stack import of_type, resources

PAGE = text_of("docs/guides/operate.md")


def _by(metric: Metric) -> str:
    whole = ", and the whole stack" if metric.also_whole else ""
    return ", ".join(f"`{one}`" for one in metric.dimensions) + whole


def test_the_table_of_metrics_is_that_of_the_code() -> None:
    expected = [[f"`{one.name}`", one.unit.value, _by(one), one.meaning] for one in METRICS.values()]
    assert table(PAGE, "metric", "unit", "by", "means") == expected


def test_every_alarm_of_the_operator_is_explained() -> None:
    alarms = of_type(resources(), "AWS::CloudWatch::Alarm").values()
    explained = [name for row in table(PAGE, "alarm", "means", "what to do") for name in codes(row[0])]
    assert sorted(explained) == sorted(one["AlarmName"].removeprefix("operator-prod-") for one in alarms)


def test_every_kind_of_mail_has_somebody_who_acts() -> None:
    named = [kind for row in table(PAGE, "subject", "who acts") for kind in codes(row[0])]
    assert sorted(named) == sorted(MAILED)
    assert len(MAILED) < len(NoticeKind)
