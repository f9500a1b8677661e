"""What pages are made of: tables, drawings, and templates that escape every name."""

from typing import Any

from gmpll.apps.pages.tables import count, number

__all__ = ["render_template"]


def render_template(package: str, template: str, **facts: Any) -> str:
    """Render a file in a package's folder ``templates``, which may use those all pages share."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("gmpll.apps.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The drawings were written by an XML serialiser, which has escaped every name in them.
    environment.filters |= {"drawn": Markup, "count": count, "number": number}
    return environment.get_template(template).render(**facts)
