"""What if: one question asked in many variants, on all cores or a Dask cluster."""
