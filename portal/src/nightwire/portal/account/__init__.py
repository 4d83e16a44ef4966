"""Who is signed in at the portal, and whose forms these are."""

from nightwire.portal.account.forms import Form, check_token, form_of, form_token, local
from nightwire.portal.account.sessions import Sessions

__all__ = ["Form", "Sessions", "check_token", "form_of", "form_token", "local"]
