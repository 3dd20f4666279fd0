"""Notices from the cloud itself: its metadata service knows first that an instance goes away.

``SpotListener(notice_settings(), on_heard).start()`` finds out which cloud this is and tells what
it hears: a notice, latched, or a hint that may be withdrawn. Only the listener's own thread loads
what speaks HTTP.
"""
