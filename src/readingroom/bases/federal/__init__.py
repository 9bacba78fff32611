"""The federal base: bills, people, votes, laws and rules, every record addressable and citable."""
