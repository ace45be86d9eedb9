"""Who watches a stream, and whether they still may: a logout, a lost role or a narrower scope ends their streams."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

# Whatever a user's permissions are made of, as one text. Changed in any way: the streams are judged anew.
STANDING = """
SELECT u.id, concat_ws('|', u.is_active, u.is_superuser, u.password,
       (SELECT string_agg(g.group_id::text, ',' ORDER BY g.group_id) FROM auth_user_groups g WHERE g.user_id = u.id),
       (SELECT string_agg(p.permission_id::text, ',' ORDER BY p.permission_id) FROM auth_user_user_permissions p
         WHERE p.user_id = u.id),
       (SELECT string_agg(s.agent, ',' ORDER BY s.agent) FROM runs_agentscope s WHERE s.user_id = u.id))
  FROM auth_user u WHERE u.id = ANY (%s)
"""
SESSIONS = "SELECT session_key FROM django_session WHERE session_key = ANY (%s) AND expire_date > now()"


@dataclass(slots=True, eq=False)
class Viewer:
    """One browser at one stream. `standing` is what their permissions were when it was opened."""

    user_id: int
    session_key: str | None
    standing: str = ""
    gone: bool = False


def standings(user_ids: Iterable[int]) -> dict[int, str]:
    with connection.cursor() as cursor:
        cursor.execute(STANDING, [list(set(user_ids))])
        return dict(cursor.fetchall())


def judge(viewers: Sequence[Viewer]) -> list[Viewer]:
    """Marks and gives back those whose login is over or whose permissions changed. Two queries, however many."""
    if not viewers:
        return []
    now = standings(viewer.user_id for viewer in viewers)
    keys: list[Any] = [viewer.session_key for viewer in viewers if viewer.session_key]
    with connection.cursor() as cursor:
        cursor.execute(SESSIONS, [keys])
        alive = {row[0] for row in cursor.fetchall()}
    gone = [v for v in viewers if now.get(v.user_id) != v.standing or (v.session_key and v.session_key not in alive)]
    for viewer in gone:
        viewer.gone = True
    return gone
