-- When something that callers see could not be used: a service, a way to pay, a chain, or the server itself. One row a spell; the page
-- /status reads nothing else.
create table status_spells (
  component text not null check (length(component) between 1 and 200),
  began_at timestamptz not null,
  -- The last time that a replica found it so.
  seen_at timestamptz not null check (seen_at >= began_at),
  -- Null while it lasts.
  ended_at timestamptz check (ended_at >= began_at),
  primary key (component, began_at)
);
create unique index status_spells_open on status_spells (component) where ended_at is null;
create index status_spells_by_end on status_spells (ended_at);

-- When any replica last looked: a long gap is one in which no server ran.
create table status_looks (
  one boolean primary key default true check (one),
  looked_at timestamptz not null
);
