"""``parcae local``: the whole system on one machine, with a fake cloud."""
