PRAGMA application_id = 1735552612;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE event(
  stream INTEGER NOT NULL,
  position INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  chain INTEGER NOT NULL,               -- the sum of this event and of all before it
  payload BLOB NOT NULL,
  PRIMARY KEY(stream, position)
) WITHOUT ROWID;
INSERT INTO "event" VALUES(1,1,1,-6795579241561809968,X'30');
INSERT INTO "event" VALUES(1,2,1,4748252502473029628,X'31');
INSERT INTO "event" VALUES(1,3,1,-5474821796516047293,X'32');
INSERT INTO "event" VALUES(1,4,1,6351295844491717152,X'33');
INSERT INTO "event" VALUES(1,5,1,7032409359554546906,X'34');
INSERT INTO "event" VALUES(1,6,1,4402299325545804776,X'35');
CREATE TABLE job(
  seq INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  state INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  due INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  id TEXT,
  key TEXT,
  attempt INTEGER NOT NULL DEFAULT 0,
  yields INTEGER NOT NULL DEFAULT 0,   -- 1: it lets others of its key pass while it waits
  cancel INTEGER NOT NULL DEFAULT 0,   -- running: 1 if it was cancelled; ended: 1 likewise
  token INTEGER,
  until INTEGER,                       -- running: of its lease; ended: of its outcome
  reason TEXT,
  progress BLOB,
  sum INTEGER NOT NULL,
  payload BLOB NOT NULL
);
INSERT INTO "job" VALUES(1,1,4,0,1795961675305,1,'done',NULL,1,0,0,NULL,17563961675306,NULL,NULL,-4970224222420797877,X'');
INSERT INTO "job" VALUES(2,1,3,0,1795961675308,1,'dead',NULL,2,0,0,NULL,NULL,'refused',NULL,-6304654978726388876,X'31');
INSERT INTO "job" VALUES(3,1,2,0,1795961675308,1,'running',NULL,1,0,0,4,1795961735308,NULL,X'2268616C6622',4709225420185230080,X'32');
INSERT INTO "job" VALUES(4,1,0,0,1795961675309,1,NULL,'k',0,0,0,NULL,NULL,NULL,NULL,-8967465809998214204,X'33');
INSERT INTO "job" VALUES(5,1,1,0,1795961675309,1,NULL,'k',0,0,0,NULL,NULL,NULL,NULL,-899891022467367360,X'34');
INSERT INTO "job" VALUES(6,1,0,2,1795961675320,1,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,3661623896371859702,X'35');
CREATE TABLE kind(kind INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
INSERT INTO "kind" VALUES(1,'note/1');
INSERT INTO "kind" VALUES(2,'numbers/1');
CREATE TABLE lease(
  name TEXT PRIMARY KEY,
  token INTEGER NOT NULL,
  until INTEGER NOT NULL                -- 0 if it was given back
) WITHOUT ROWID;
INSERT INTO "lease" VALUES('leader',6,1795961685314);
CREATE TABLE queue(
  queue INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  paused INTEGER NOT NULL DEFAULT 0,
  waiting INTEGER NOT NULL DEFAULT 0,
  running INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0,
  done INTEGER NOT NULL DEFAULT 0,
  minute INTEGER NOT NULL DEFAULT 0,   -- since 1970, of the last end
  ended INTEGER NOT NULL DEFAULT 0,    -- in that minute
  before INTEGER NOT NULL DEFAULT 0    -- in the minute before
);
INSERT INTO "queue" VALUES(1,'notes',0,3,1,1,1,29932694,1,0);
CREATE TABLE snapshot(
  stream INTEGER PRIMARY KEY,
  position INTEGER NOT NULL,
  chain INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  sum INTEGER NOT NULL,
  payload BLOB NOT NULL
);
INSERT INTO "snapshot" VALUES(1,4,6351295844491717152,2,-5038366234048047240,X'5B302C312C322C335D');
CREATE TABLE store(
  only INTEGER PRIMARY KEY CHECK (only = 1),
  boot TEXT NOT NULL,      -- the start of the machine in which the clock was set
  ahead INTEGER NOT NULL,  -- ms that the clock of the store is ahead of that of the machine
  seen INTEGER NOT NULL,   -- ms: the latest time that was written
  token INTEGER NOT NULL   -- the last token that was given away
);
INSERT INTO "store" VALUES(1,'4c37e6ec-ede0-4b18-b816-961e06f064d5
',1795952154044,1795961675312,6);
CREATE TABLE stream(
  stream INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  key TEXT NOT NULL,
  position INTEGER NOT NULL DEFAULT 0,  -- of the last event
  token INTEGER NOT NULL DEFAULT 0,     -- of the one who has appended last
  chain INTEGER NOT NULL DEFAULT 0,     -- the sum of all events
  UNIQUE(name, key)
);
INSERT INTO "stream" VALUES(1,'numbers','alice',6,5,4402299325545804776);
CREATE UNIQUE INDEX job_id ON job(queue, id) WHERE id IS NOT NULL;
CREATE INDEX job_ready ON job(queue, priority DESC, due) WHERE state = 0;
CREATE INDEX job_key ON job(queue, key, state, due) WHERE key IS NOT NULL AND state < 3;
CREATE INDEX job_running ON job(queue, until) WHERE state = 2;
CREATE INDEX job_dead ON job(queue) WHERE state = 3;
CREATE INDEX job_ended ON job(until) WHERE state = 4;
COMMIT;
