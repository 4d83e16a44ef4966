"""VOEvents in the log, as everybody reads them: which hang together."""

from nightwire.core.voevents.threads import Post, missing, post, skymap_url, thread

__all__ = ["Post", "missing", "post", "skymap_url", "thread"]
