-- query VersionOfTorch
SELECT DISTINCT torch_version FROM process WHERE torch_version IS NOT NULL ORDER BY 1;
