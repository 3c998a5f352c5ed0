"""Where products run: configuration, memory budget, threads, tiles. No mathematics of ours."""

from mercer.backends.config import Config, config_context, get_config

__all__ = ["Config", "config_context", "get_config"]
