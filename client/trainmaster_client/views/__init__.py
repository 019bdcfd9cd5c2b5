"""The one reader of the queue for people: answers of the API become words, which each view only draws.

Pure: an instant goes in, frozen data come out.
"""
