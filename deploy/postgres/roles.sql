-- Run once, by the server's superuser in the database `trawl`, where the volume is empty: the fleet's user owns that database
-- and has no power over the server, `trawl_reader` can only read, and the superuser is reached from inside the container alone.
\getenv password POSTGRES_PASSWORD
CREATE ROLE trawl LOGIN PASSWORD :'password';
CREATE ROLE trawl_reader LOGIN PASSWORD :'password';
ALTER DATABASE trawl OWNER TO trawl;
ALTER DEFAULT PRIVILEGES FOR ROLE trawl GRANT SELECT ON TABLES TO trawl_reader;
ALTER ROLE CURRENT_USER PASSWORD NULL;
