"""What attackers can and cannot do to everybody else."""
