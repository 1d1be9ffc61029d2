"""What long-running programs share: settings, logs, probes, metrics, requests to an API server."""
