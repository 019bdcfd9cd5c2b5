"""`make demo-dashboard`: a night of two teams on a twin, and Chromium on every page of the dashboard."""
