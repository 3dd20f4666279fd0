"""Other systems, as sets of rules: what they do at an event, and what it costs them.

Every file says which system it restates and where its rules come from. All of them see the event
before they decide, take starting and sending times from the same profile as the published rules,
and draw who vanishes with a fixed seed.
"""
