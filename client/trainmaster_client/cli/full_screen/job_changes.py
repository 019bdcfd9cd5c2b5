"""Cancel, priority, hold and release: asked about with what they would do, and done where it is allowed."""

from abc import abstractmethod
from collections.abc import Callable

from trainmaster_client.api import Document
from trainmaster_client.cli.full_screen.app_parts import BackgroundApp
from trainmaster_client.cli.full_screen.consequences import (
    cancel_consequence,
    hold_consequence,
    priority_consequence,
)
from trainmaster_client.cli.full_screen.dialogs import Confirmation, Dialog, PriorityPrompt
from trainmaster_client.cli.full_screen.picture_source import PictureSource
from trainmaster_client.cli.full_screen.top_options import TopOptions
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.progress import place_line

READ_ONLY = "Read-only. To change jobs: trainmaster top --allow-changes"
NO_JOB = "There is no job of yours under the cursor."

Ask = Callable[[JobView], Dialog | None]
"""Makes the dialog for a job; None if nothing can be done, which was already said."""
Do = Callable[[JobView, str], Document]
"""Carries out the change with the dialog's answer."""


class JobChanges(BackgroundApp):
    """Changes the job that is shown or under the cursor."""

    source: PictureSource
    options: TopOptions

    @property
    @abstractmethod
    def chosen_job(self) -> str:
        """Name of the chosen job; empty if there is none, or it is another team's."""

    @abstractmethod
    def refresh_picture(self) -> None: ...

    def action_cancel(self) -> None:
        def ask(job: JobView) -> Dialog | None:
            consequence = cancel_consequence(job, now=self.options.now())
            return self._unless(job.is_final, consequence, Confirmation(f"Cancel {job.name}?", consequence))

        self._change(ask, lambda job, _answer: self.source.cancel(job.name or ""))

    def action_priority(self) -> None:
        def ask(job: JobView) -> Dialog | None:
            consequence = priority_consequence(job)
            prompt = PriorityPrompt(f"Priority of {job.name}, now {job.priority}", consequence)
            return self._unless(job.is_final, consequence, prompt)

        self._change(ask, lambda job, answer: self.source.change(job.name or "", priority=int(answer)))

    def action_hold(self) -> None:
        def ask(job: JobView) -> Dialog | None:
            consequence = hold_consequence(job)
            verb = "Release" if job.state == "held" else "Hold"
            dialog = Confirmation(f"{verb} {job.name}?", consequence)
            return self._unless(not job.is_waiting, consequence, dialog)

        self._change(ask, lambda job, _answer: self.source.change(job.name or "", held=job.state != "held"))

    def _unless(self, is_vain: bool, why: str, dialog: Dialog) -> Dialog | None:  # noqa: FBT001  a condition
        if is_vain:
            self.say(why)
            return None
        return dialog

    def _change(self, ask: Ask, do: Do) -> None:
        """Ask about a change and make it; the job is read again first, so that the question is up to date."""
        name = self.chosen_job
        if not self.options.may_change or not name:
            self.say(NO_JOB if self.options.may_change else READ_ONLY, is_wrong=True)
            return

        def then(document: Document) -> None:
            job = job_view(document)
            dialog = ask(job)
            if dialog is not None:
                self.push_screen(dialog, lambda answer: self._do(job, answer or "", do))

        self.begin("question", lambda: self.source.job(name), then, self._nothing_changed)

    def _do(self, job: JobView, answer: str, do: Do) -> None:
        if not answer:
            return

        def then(document: Document) -> None:
            after = job_view(document)
            self.say(f"{after.name}: {place_line(after) if after.is_waiting else after.state}")
            self.refresh_picture()

        if not self.begin("change", lambda: do(job, answer), then, self._perhaps_changed):
            self.say("Another change is still under way; nothing was sent.", is_wrong=True)

    def _nothing_changed(self, error: TrainmasterClientError) -> None:
        self.say(f"Nothing was changed: {error}", is_wrong=True)

    def _perhaps_changed(self, error: TrainmasterClientError) -> None:
        """Report a failed change: a refusal changed nothing; else the next picture shows what happened."""
        self.say(f"Not confirmed: {error}", is_wrong=True)
        self.refresh_picture()
