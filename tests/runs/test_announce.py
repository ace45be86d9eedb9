"""What a process makes known of its agents as it starts, while others start too."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection

from runs.models import Release
from runs.registry import AgentsUnusable, announce_one
from runs.sdk import Agent, Finish

INSERT = "INSERT INTO runs_release (id, agent, version, content, created_at) VALUES (%s, %s, %s, '{}', now())"
one = Agent(name="of-two-workers", version="1", tools=[], decide=lambda state: Finish(1))


class AnotherWorker:
    """Announces as soon as this process has looked once."""

    def __init__(self, dsn: str, release_id: str) -> None:
        self.dsn = dsn
        self.release_id = release_id
        self.announced = False

    def __call__(self, execute: Callable[..., Any], statement: str, *given: Any) -> Any:
        answer = execute(statement, *given)
        if not self.announced and "runs_release" in statement:
            self.announced = True
            with psycopg.connect(self.dsn, autocommit=True) as other:
                other.execute(INSERT, (self.release_id, one.name, one.version))
        return answer


def test_two_workers_that_start_at_the_same_moment_announce_one_release(dsn: str) -> None:
    other = AnotherWorker(dsn, one.release_id)
    with connection.execute_wrapper(other):
        assert announce_one(one).id == one.release_id
    assert other.announced and Release.objects.filter(agent=one.name).count() == 1


def test_other_content_under_the_same_version_is_refused_though_it_came_a_moment_ago(dsn: str) -> None:
    with connection.execute_wrapper(AnotherWorker(dsn, "f" * 64)), pytest.raises(AgentsUnusable, match="other content"):
        announce_one(one)


def taking(*names: str) -> Agent:
    takes = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    return Agent("asking", "1", decide=lambda state: Finish(1), input=takes)


@pytest.mark.django_db
def test_fields_that_change_places_make_no_other_release_and_are_told_in_their_new_order() -> None:
    first = announce_one(taking("b", "longest", "a"))
    assert list(first.contract["input"]["properties"]) == ["b", "longest", "a"]
    assert first.contract == first.content
    second = announce_one(taking("longest", "a", "b"))
    assert second.id == first.id and Release.objects.filter(agent="asking").count() == 1
    assert list(Release.objects.get(id=first.id).contract["input"]["properties"]) == ["longest", "a", "b"]


@pytest.mark.django_db
def test_a_release_from_before_its_order_was_kept_is_told_with_what_is_required_first() -> None:
    made = announce_one(taking("b", "longest", "a"))
    content = made.content["input"] | {"required": ["longest"]}
    Release.objects.filter(id=made.id).update(declared="", content=made.content | {"input": content})
    assert next(iter(Release.objects.get(id=made.id).contract["input"]["properties"])) == "longest"
