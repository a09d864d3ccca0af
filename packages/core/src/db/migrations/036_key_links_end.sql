-- Links are forgotten by their age, the oldest first.
CREATE INDEX key_links_created ON key_links (created_at);
