"""When the job that was asked about would start: one heat map a policy."""

from collections.abc import Sequence

from trainmaster_client.simulate.comparison.start_hours import StartHours
from trainmaster_client.simulate.comparison.wording import count_text, time_text
from trainmaster_client.simulate.page.markup import Node, figure, node, table
from trainmaster_client.simulate.page.week_map import week_map


def starts_section(starts: Sequence[StartHours]) -> Node:
    top = max((start.longest_s for start in starts), default=0.0)
    rows = [
        [
            start.label,
            count_text(start.asked),
            time_text(start.p50_s),
            time_text(start.p90_s),
            count_text(start.never),
        ]
        for start in starts
        if start.refused is None
    ]
    figures = [
        figure(
            f"{start.label}: half of the hours it starts within {time_text(start.p50_s)}",
            week_map(
                start.by_hour,
                top=top,
                text=time_text,
                caption="Median wait by the hour of the week of its submission (UTC)",
            ),
        )
        for start in starts
        if start.refused is None
    ]
    refused = [
        node("p", f"{start.label} would refuse it: {start.refused}.", class_="warn")
        for start in starts
        if start.refused is not None
    ]
    head = ["policy", "submissions", "median wait", "9 of 10 within", "never started"]
    return node(
        "section",
        node("h2", "When would it have started?", id="ask"),
        node("p", "The job that was asked about, submitted at each hour of the period. Lighter is better."),
        *refused,
        *([table(head, rows, caption="Waits of the job that was asked about")] if rows else []),
        node("div", *figures, class_="pair broad"),
    )
