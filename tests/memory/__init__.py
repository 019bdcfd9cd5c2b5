"""Every port in plain Python: what tests run thousands of histories over.

``tests/integration/test_port_contract.py`` holds store, readers and policies to what the real table does.
"""
