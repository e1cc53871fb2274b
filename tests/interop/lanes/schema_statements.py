"""DDL that a real server runs and logs, and statements about its tables that ours must answer alike."""

_SEQUENCES = (
    "CREATE SEQUENCE s1",
    "CREATE SEQUENCE s2 COMMENT = 'it''s'",
    "ALTER TABLE s1 COMMENT = 'changed'",
    "ALTER TABLE s2 RENAME s3",
    "CREATE TABLE numbered (a INT DEFAULT NEXTVAL(s1), b INT DEFAULT (NEXTVAL(s1)+1), c INT DEFAULT NEXT VALUE FOR s1, "
    "d INT DEFAULT (NEXT VALUE FOR r1.s1 + 2), e INT DEFAULT (LASTVAL(s1)), f INT DEFAULT (PREVIOUS VALUE FOR s1), "
    "g INT DEFAULT (coalesce(nextval(s1), nextval(`s3`))), h INT DEFAULT PREVIOUS VALUE FOR s1, i INT DEFAULT 1)",
    "ALTER TABLE numbered ALTER i SET DEFAULT (nextval(s1))",
)
_PERIOD = "s DATE, e DATE, PERIOD FOR p (s, e)"
_SYSTEM = "rs TIMESTAMP(6) AS ROW START, re TIMESTAMP(6) AS ROW END, PERIOD FOR SYSTEM_TIME (rs, re)"
_KEYS = (
    "CREATE TABLE k1 (a INT NOT NULL UNIQUE, b INT NOT NULL, UNIQUE (b), KEY (b,a), c INT, KEY (c), UNIQUE (c), "
    "KEY (c,b))",
    "CREATE TABLE k2 (a INT PRIMARY KEY, b INT, c INT, KEY (a), KEY (b), UNIQUE (b), KEY (b,c), UNIQUE(c,b), KEY(c))",
    "CREATE TABLE k3 (a INT, b INT, c INT NOT NULL, d INT NOT NULL, UNIQUE (c,d), UNIQUE(d), KEY (c), PRIMARY KEY "
    "(a,b), KEY (b,a), KEY (b))",
    "CREATE TABLE k4 (a INT, b VARCHAR(20) NOT NULL, UNIQUE (b(5)), KEY (b), c TEXT NOT NULL, UNIQUE (c), d INT NOT "
    "NULL, KEY (d))",
    "CREATE TABLE k5 (a INT NOT NULL UNIQUE, b INT NOT NULL UNIQUE)",
    "ALTER TABLE k5 DROP INDEX a",
    "CREATE TABLE k6 (a INT, b INT UNIQUE)",
    "ALTER TABLE k6 MODIFY b INT NOT NULL",
    "CREATE TABLE k7 (a INT PRIMARY KEY, b INT NOT NULL UNIQUE)",
    "ALTER TABLE k7 DROP PRIMARY KEY",
    "CREATE TABLE k8 (a INT, b INT, UNIQUE KEY(a,b), UNIQUE KEY (b,a), KEY (a))",
    "CREATE TABLE k9 (a INT NOT NULL, b INT NOT NULL, UNIQUE KEY(a,b), UNIQUE KEY (b,a), KEY (a))",
    "CREATE TABLE k10 (a TEXT, b VARCHAR(3000), c INT NOT NULL, UNIQUE(a), UNIQUE (b), UNIQUE (a,c), UNIQUE(c,b), "
    "KEY (b(10)), FULLTEXT (a))",
    "CREATE TABLE k11 (a INT PRIMARY KEY, b INT UNIQUE, UNIQUE b2 (b), c BIT(3) UNIQUE, d BINARY(3) NOT NULL UNIQUE)",
    "CREATE TABLE kv1 (a INT PRIMARY KEY, b INT UNIQUE, c INT, KEY (c), KEY (b, a)) WITH SYSTEM VERSIONING",
    f"CREATE TABLE kv2 (a INT, b INT UNIQUE, PRIMARY KEY (a), {_SYSTEM}) WITH SYSTEM VERSIONING",
    f"CREATE TABLE kp1 (a INT, b INT, {_PERIOD}, PRIMARY KEY (a, p WITHOUT OVERLAPS), KEY (b), UNIQUE (b), "
    "CHECK (a > 0))",
    f"CREATE TABLE kp2 (a INT NOT NULL, {_PERIOD}, UNIQUE (a, p WITHOUT OVERLAPS), b INT UNIQUE, KEY (s))",
    f"CREATE TABLE kp3 (a INT, b INT, {_PERIOD}, {_SYSTEM}, PRIMARY KEY (a, p WITHOUT OVERLAPS), KEY (b), UNIQUE "
    "(b, a), CHECK (a > 0)) WITH SYSTEM VERSIONING",
)
_OPTIONS = (
    *(
        f"CREATE TABLE o_{engine}_{number} (a INT) ENGINE={engine} {options}"
        for engine in ("InnoDB", "MyISAM", "Aria")
        for number, options in enumerate(
            (
                "CHECKSUM=0 DELAY_KEY_WRITE=0 MIN_ROWS=0 MAX_ROWS=0 AVG_ROW_LENGTH=0",
                "PACK_KEYS=DEFAULT STATS_PERSISTENT=DEFAULT STATS_AUTO_RECALC=DEFAULT STATS_SAMPLE_PAGES=DEFAULT",
                "PAGE_CHECKSUM=DEFAULT",
                "PAGE_CHECKSUM=1 TABLE_CHECKSUM=1",
                "PAGE_CHECKSUM=0",
                "KEY_BLOCK_SIZE=0 CONNECTION='' INSERT_METHOD=NO",
            )
        )
    ),
    "CREATE TABLE aria_once (a INT) ENGINE=Aria",
    "ALTER TABLE aria_once ENGINE=InnoDB",
    "CREATE TABLE aria_between (a INT)",
    "ALTER TABLE aria_between ENGINE=Aria",
    "ALTER TABLE aria_between ADD b INT",
    "ALTER TABLE aria_between ENGINE=MyISAM",
    "CREATE TABLE aria_twice (a INT) ENGINE=Aria",
    "ALTER TABLE aria_twice ENGINE=MyISAM",
    "ALTER TABLE aria_twice COMMENT='x'",
    "CREATE TABLE aria_without (a INT) ENGINE=Aria PAGE_CHECKSUM=0",
    "ALTER TABLE aria_without ENGINE=InnoDB",
    "CREATE TABLE aria_as_told (a INT) ENGINE=Aria",
    "ALTER TABLE aria_as_told ENGINE=InnoDB, PAGE_CHECKSUM=0",
    "CREATE TABLE aria_split (a INT) ENGINE=Aria PARTITION BY HASH (a) PARTITIONS 2",
    "ALTER TABLE aria_split ENGINE=InnoDB",
    "ALTER TABLE o_InnoDB_3 CHECKSUM=0",
    "CREATE TABLE merged_1 (a INT) ENGINE=MyISAM",
    "CREATE TABLE merged_2 (a INT) ENGINE=MyISAM",
    "CREATE TABLE merging (a INT) ENGINE=MERGE UNION=(merged_1, r1.`merged_2`) INSERT_METHOD=LAST",
    "CREATE TABLE merging_no (a INT) ENGINE=MERGE UNION (merged_1) INSERT_METHOD=NO",
)
_EXPRESSIONS = (
    "CREATE TABLE printed (a INT, b INT, c INT, d VARCHAR(9), "
    + ", ".join(
        f"e{number} {kind} AS ({text})"
        for number, (kind, text) in enumerate(
            (
                *(("INT", f"a {text}") for text in ("and b", "or b+1", "xor b", "and (b=1)", "and d", "is true")),
                *(("INT", f"a {text}") for text in ("is not false", "not in (1,2)", "in (3)", "not in (b=1)", "<=> b")),
                *(("INT", f"not {text}") for text in ("a", "(a=1)", "(a and b)", "(a > b)", "(a=1 or b=2)", "a <= 3")),
                *(
                    ("INT", text)
                    for text in ("not (a in (1)) and not b", "not (a=1 and (b=2 or c=3))", "!a", "1 and a")
                ),
                *(
                    ("INT", text)
                    for text in ("case when a then b else c end", "if(a,b,c)", "(a=1)=(b=2)", "a is unknown")
                ),
                *(
                    ("VARCHAR(9)", f"trim({text})")
                    for text in ("d", "leading 'x' from d", "both 'x' from d", "'x' from d")
                ),
                *(("INT", text) for text in ("position('x' in d)", "locate('x',d)", "locate('x',d,2)", "instr(d,'x')")),
                *(("INT", text) for text in ("extract(year from d)", "d regexp 'x'", "cast(d as unsigned integer)")),
                *(("DECIMAL(5,2)", text) for text in ("cast(a as decimal(5,2))", "cast(d as signed)")),
                ("DATE", "date(d)"),
            )
        )
    )
    + ", f GEOMETRY DEFAULT st_geomfromtext('POINT(1 1)'), "
    "g VARCHAR(9) DEFAULT concat('a', trim(both 'x' from 'xax')))",
)
_ALTERED = (
    "CREATE TABLE twice (a INT PRIMARY KEY, b INT)",
    "INSERT INTO twice VALUES (1, 2)",
    "ALTER TABLE twice ADD x INT, ALTER x SET DEFAULT 5, ALTER b SET DEFAULT 6",
    "ALTER TABLE twice ADD y INT, MODIFY y BIGINT FIRST",
    "ALTER TABLE twice ADD u INT, ALTER u DROP DEFAULT, ALTER b DROP DEFAULT",
    "ALTER TABLE twice DROP b, ADD b INT NOT NULL, ALTER b SET DEFAULT 3",
)
_ROWS = (
    "SET time_zone = '+02:00'",
    "CREATE TABLE local (a INT PRIMARY KEY, t TIMESTAMP(3) NULL, d DATETIME(3) AS (t) VIRTUAL, dd DATE AS (t), "
    "d2 DATE AS (date(t)), y INT AS (year(t)), mo SMALLINT AS (month(t)), dy INT AS (dayofmonth(t)), "
    "h TINYINT AS ((hour(t))), mi INT AS (minute(t)), se INT AS (second(t)), ux BIGINT AS (floor(unix_timestamp(t))), "
    "x INT AS (a + 1), st DATETIME(3) AS (t) STORED, of_st DATETIME(3) AS (st) VIRTUAL)",
    "INSERT INTO local (a, t) VALUES (1, '2020-01-01 01:02:03.456'), (2, NULL), (3, '2024-02-29 23:30:00')",
    "SET time_zone = '+00:00'",
    "CREATE TABLE bytes (a INT PRIMARY KEY, e ENUM('a','b') BYTE, s SET('x','yy') CHARACTER SET binary)",
    "INSERT INTO bytes VALUES (1, 'a', 'x,yy')",
    "CREATE TABLE bits (a INT PRIMARY KEY, b BIT(4), c VARCHAR(5))",
    "INSERT INTO bits VALUES (1, 3, 'e')",
    "ALTER TABLE bits MODIFY b BIT(12)",
    "INSERT INTO bits VALUES (2, 3, NULL)",
    "INSERT INTO kp1 (a, b, s, e) VALUES (1, 1, '2020-01-01', '2020-02-01'), (1, 2, '2020-03-01', '2020-04-01')",
    "UPDATE kp1 SET b = 3 WHERE s = '2020-03-01'",
    "INSERT INTO kp2 (a, b, s, e) VALUES (1, 1, '2020-01-01', '2020-02-01'), (1, 2, '2020-03-01', '2020-04-01')",
    "DELETE FROM kp2 WHERE b = 1",
    "INSERT INTO k4 VALUES (1, 'abcde', 'x', 1), (2, 'fghij', 'X2', 2)",
    "UPDATE k4 SET d = 7 WHERE c = 'x'",
)
DDL = (
    "CREATE DATABASE r1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci COMMENT 'it''s'",
    "USE r1",
    "CREATE TABLE t1 (id int AUTO_INCREMENT PRIMARY KEY, a int unsigned zerofill default '5', "
    "b varchar(10) character set latin1 default 1, b2 varchar(10) collate utf8mb4_bin not null default 'x''y\\\\z', "
    "c decimal(5,2) default 1, d double default 1.50, e float(7,3) default 2, f bit(10) default 5, "
    "f2 bit(3) default b'101', g date default 20200101, h datetime(3) default now(3) on update now(3), "
    "i timestamp, i2 timestamp null default null, j year default 2020, k enum('a','b''c') default 'a', "
    "l set('x','y') character set latin1, m text, n blob default 'x', o json, p uuid default uuid(), q inet6, "
    "s varchar(20) default (concat('x',1+2)), t int as (a*2) virtual, u int as (a+1) persistent invisible, "
    "v int invisible default 7 comment 'c''\\n', w point not null, x char(5) binary, y tinyint(1) default true, "
    "z time(2) default '12:00:00', aa binary(3) default 'a', ab varbinary(5) default 0x4142, "
    "ac varchar(100) compressed, ad text compressed, ae int check (ae > 5 and a < 3), unique key ub (b), "
    "key kc (c, b2(3) desc), key kh (a) using hash, fulltext key ft (m), spatial key sp (w), key ig (d) ignored, "
    "key cm (e) comment 'kom''', constraint chk check (a<>b)) "
    "ENGINE=InnoDB COMMENT='tab''le' ROW_FORMAT=DYNAMIC STATS_PERSISTENT=1",
    "CREATE TABLE p (id int primary key, id2 int, key(id2))",
    "CREATE TABLE f (a int, b int, constraint fk1 foreign key (a) references p (id) on delete cascade on update "
    "set null, foreign key (b) references r1.p(id2) on delete restrict on update no action)",
    "CREATE TABLE v1 (a int) with system versioning",
    "CREATE TABLE v2 (a int, b int without system versioning, rs timestamp(6) generated always as row start, re "
    "timestamp(6) generated always as row end, period for system_time(rs, re)) with system versioning",
    "CREATE TABLE v3 (a int, s date, e date, period for p (s, e), unique (a, p without overlaps))",
    "CREATE TABLE pa (a int, b date) engine=aria checksum=1 partition by range (year(b)) subpartition by hash(a) "
    "subpartitions 2 (partition p0 values less than (2000) comment 'x', partition p1 values less than maxvalue)",
    "CREATE TABLE pc (a varchar(10), b int) partition by list columns (a) (partition x values in ('a','b'), "
    "partition y values in (null), partition z default)",
    "CREATE TABLE ph (a int primary key, b int) partition by key (a) partitions 3",
    "CREATE SEQUENCE sq START 5 INCREMENT 2 MAXVALUE 100 NOCACHE CYCLE",
    "CREATE TABLE ar (a int, b varchar(10), primary key(a)) engine=aria transactional=1 page_checksum=0",
    "CREATE TABLE ap (a int) engine=aria",
    "CREATE TABLE me (a int, b varchar(10), key (b) using btree, key(a)) engine=memory",
    "CREATE TABLE my (a int, b char(10)) engine=myisam max_rows=5 min_rows=2 avg_row_length=10 pack_keys=1 "
    "delay_key_write=1",
    "CREATE TABLE la (a varchar(10), b varchar(10) character set utf8mb3, c varchar(10) collate latin1_bin) "
    "charset latin1",
    "CREATE TABLE ex (a int default null, b int not null, c varchar(5) default (1+2), d int default (1+2*3), "
    "e int default -1, f bigint default +2, g double default 1e20, h decimal(10,3) default 1.5e1, "
    "i varchar(10) default current_user(), j datetime default current_timestamp, l time default 0, "
    "m int default (a is not null and b in (1,2) or not c like 'x%'), "
    "n int default (case when a>1 then 2 else 3 end), p int default (-a), q int default (a between 1 and 2), "
    "r int default (if(a, b, c)), s int default (a mod 2), t bool default (a xor b), u bool default (a = b), "
    "v int default (a div b), w varchar(5) default (json_value(c, '$.x')), "
    "x int default (length(c) + char_length(c)), y date default (date_add('2020-01-01', interval 1 day)), "
    "z int default (a | b & 3 ^ ~1), tt varchar(30) default (substr(c,1,2)), "
    "uu varchar(30) default (upper(c) collate utf8mb4_bin))",
    "ALTER TABLE p ADD note varchar(20) DEFAULT 'n' AFTER id, DROP KEY id2, ADD UNIQUE KEY id2 (id2)",
    "ALTER TABLE la CHANGE a a2 varchar(20), ADD KEY (a2(5)), COMMENT 'altered'",
    "RENAME TABLE me TO memory_table",
    "CREATE TABLE counted (id INT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT=100",
    "CREATE TABLE counted_later LIKE counted",
    "ALTER TABLE counted_later AUTO_INCREMENT = 7",
    "CREATE TABLE counted_anew (id INT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT=100",
    "TRUNCATE counted_anew",
    *_SEQUENCES,
    *_KEYS,
    *_OPTIONS,
    *_EXPRESSIONS,
    *_ALTERED,
    *_ROWS,
)
#: Their columns are described alike, and have the same rows.
DESCRIBED = (
    *(f"SELECT * FROM r1.{name}" for name in ("k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11")),
    *(f"SELECT * FROM r1.{name}" for name in ("kv1", "kv2", "kp1", "kp2", "kp3", "bytes", "local", "bits")),
    "SELECT d, t FROM r1.local WHERE a = 1",
    "SELECT 1, a FROM r1.bits WHERE a = 1",
    "SELECT COUNT(*), MAX(a) FROM r1.bits",
)
#: Queries of tables that every server has: told by their expressions.
TOLD_BY_EXPRESSIONS = (
    "SELECT * FROM information_schema.key_column_usage WHERE referenced_table_name IS NOT NULL",
    "SELECT 1 UNION ALL SELECT 'a'",
    "SELECT CASE DATA_TYPE WHEN 'int' THEN 4 WHEN 'bigint' THEN -5 END AS t, CASE WHEN 1 THEN NULL ELSE NULL "
    "END FROM information_schema.columns WHERE table_name='p'",
    "SELECT CAST('a' AS CHAR CHARACTER SET utf8) COLLATE utf8_bin FROM information_schema.tables LIMIT 1",
    "SELECT CHARSET(table_name), COLLATION(table_name) FROM information_schema.tables LIMIT 1",
    "SELECT COALESCE(character_maximum_length, numeric_precision, 0), IFNULL(numeric_scale, -1), "
    "NULLIF(ordinal_position, 1) FROM information_schema.columns WHERE table_name = 't1'",
    "SELECT CONCAT('ALTER TABLE ', table_schema, '.', table_name, ' ENGINE=InnoDB;') FROM "
    "information_schema.tables WHERE engine='MyISAM'",
    "SELECT COUNT(*) AS c FROM information_schema.tables WHERE table_schema = 'r1' AND table_type = 'BASE "
    "TABLE' AND table_name = 'T1'",
    "SELECT COUNT(*), MAX(ordinal_position), MIN(column_name), SUM(numeric_precision), AVG(numeric_scale) "
    "FROM information_schema.columns WHERE table_schema='r1'",
    "SELECT DATE(NOW()) = CURDATE() FROM information_schema.tables LIMIT 1",
    "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE "
    "SCHEMA_NAME = 'r1'",
    "SELECT DISTINCT data_type FROM information_schema.columns WHERE table_schema='r1' ORDER BY data_type",
    "SELECT EXISTS(SELECT 1 FROM information_schema.tables WHERE table_name = 't1') AS found",
    "SELECT IF(character_maximum_length > 10, character_maximum_length, NULL) FROM information_schema.columns "
    "WHERE table_name = 't1'",
    "SELECT IS_NULLABLE = 'YES' AS nullable, COLUMN_KEY = 'PRI' pk, NOT IS_NULLABLE = 'NO' FROM "
    "information_schema.columns WHERE table_name='p'",
    "SELECT MAX(table_name), MIN(table_name) FROM information_schema.tables WHERE table_schema='r1'",
    "SELECT ROUND(1.5 * ordinal_position, 1), ordinal_position | 1, ~ordinal_position & 255 FROM "
    "information_schema.columns WHERE table_name='p'",
    "SELECT SCHEMA_NAME AS `Database` FROM INFORMATION_SCHEMA.SCHEMATA ORDER BY SCHEMA_NAME",
    "SELECT TABLE_NAME FROM information_schema.TABLES WHERE (TABLE_SCHEMA, TABLE_NAME) IN (('r1','t1'),('r1','p'))",
    "SELECT TABLE_NAME, GREATEST(ordinal_position, 2), LEAST(character_octet_length, 2147483647) FROM "
    "information_schema.columns WHERE table_name='la'",
    "SELECT `TABLE_SCHEMA`, `TABLE_NAME`, `TABLE_TYPE` FROM `information_schema`.`TABLES` WHERE "
    "`TABLE_SCHEMA` LIKE 'r%' AND `TABLE_TYPE` LIKE '%' ORDER BY TABLE_TYPE, TABLE_SCHEMA",
    "SELECT a.table_name FROM information_schema.tables a RIGHT JOIN information_schema.columns b ON "
    "a.table_name = b.table_name AND a.table_schema = b.table_schema WHERE b.table_schema = 'r1' AND "
    "a.table_name IS NULL",
    "SELECT c.table_name, c.column_name, k.constraint_name FROM information_schema.columns c LEFT JOIN "
    "information_schema.key_column_usage k USING (table_schema, table_name, column_name) WHERE c.table_schema "
    "= 'r1' ORDER BY 1, c.ordinal_position",
    "SELECT character_set_name, default_collate_name FROM information_schema.character_sets WHERE maxlen > 3",
    "SELECT collation_name FROM information_schema.collations WHERE is_default = 'Yes' AND character_set_name "
    "= 'utf8mb4'",
    "SELECT column_default IS NULL, column_default <=> NULL, column_default FROM information_schema.columns "
    "WHERE table_name='p'",
    "SELECT column_name FROM information_schema.columns WHERE table_schema='r1' AND table_name='t1' AND extra "
    "LIKE '%auto_increment%'",
    "SELECT column_name, CASE WHEN data_type IN ('int','bigint') THEN 'number' WHEN data_type LIKE '%char%' "
    "THEN 'text' ELSE data_type END FROM information_schema.columns WHERE table_name='t1'",
    "SELECT count(*) FROM information_schema.columns a, information_schema.columns b WHERE a.column_name = "
    "b.column_name AND a.table_schema = 'r1' AND b.table_schema = 'r1'",
    "SELECT domain_id, MAX(seq_no) FROM mysql.gtid_slave_pos GROUP BY domain_id",
    "SELECT engine, support, savepoints FROM information_schema.engines ORDER BY engine",
    "SELECT ordinal_position - 1, ordinal_position * 2, ordinal_position / 2, ordinal_position % 2, "
    "-ordinal_position FROM information_schema.columns WHERE table_name='p'",
    "SELECT partition_name FROM information_schema.partitions WHERE table_name='pa' AND partition_name IS NOT NULL",
    "SELECT rc.constraint_name, rc.update_rule, rc.delete_rule FROM "
    "information_schema.referential_constraints rc JOIN information_schema.key_column_usage k ON "
    "rc.constraint_name = k.constraint_name AND rc.constraint_schema = k.constraint_schema",
    "SELECT routine_name FROM information_schema.routines WHERE routine_schema = 'r1' AND routine_type='PROCEDURE'",
    "SELECT table_name FROM information_schema.tables WHERE BINARY table_name = 'T1'",
    "SELECT table_name FROM information_schema.tables WHERE FIND_IN_SET(table_name, 'k1,k2')",
    "SELECT table_name FROM information_schema.tables WHERE table_name LIKE CONCAT('%', 'k1', '%') AND "
    "table_schema = SCHEMA()",
    "SELECT table_name n FROM information_schema.tables HAVING n = 't1'",
    "SELECT table_name, index_name, non_unique FROM information_schema.statistics WHERE table_schema='r1' "
    "GROUP BY 1, 2 HAVING COUNT(*) > 1",
    "SELECT trigger_name, event_manipulation FROM information_schema.triggers WHERE trigger_schema = DATABASE()",
)
#: The same of what has no table: texts are sent in utf8mb4.
DESCRIBED_IN_UTF8MB4 = (
    "SELECT VERSION(), DATABASE(), NULL, 1",
    "SELECT table_name, ordinal_position FROM information_schema.columns WHERE table_schema = 'r1' AND "
    "column_name = 'a'",
    "SHOW DATABASES",
    "SHOW VARIABLES LIKE 'version'",
    "SHOW CREATE TABLE r1.printed",
    "SHOW CREATE TABLE r1.bits",
    "SHOW TABLES FROM r1",
)
#: What sessions set before they are asked.
RESULT_SETTINGS_IN_UTF8MB4 = (
    "SET NAMES utf8mb4",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_520_ci",
    "SET character_set_results = utf8mb4",
    "SET CHARACTER SET utf8mb4",
)
RESULT_SETTINGS = (
    *RESULT_SETTINGS_IN_UTF8MB4,
    "SET NAMES utf8mb3",
    "SET NAMES latin1",
    "SET NAMES cp932, time_zone = '-03:30'",
    "SET character_set_results = NULL, time_zone = '+02:00'",
    "SET character_set_results = binary",
)
#: Each is answered with the same names and rows.
ABOUT_TABLES = (
    "SHOW FULL TABLES IN `r1` where Table_Type = 'BASE TABLE'",
    "SHOW FULL TABLES IN `nodb` where Table_Type = 'BASE TABLE'",
    "SHOW CREATE TABLE `r1`.`nothing`",
    "SHOW CREATE VIEW `r1`.`p`",
    "SHOW CREATE SEQUENCE `r1`.`p`",
    "SHOW CREATE SEQUENCE `r1`.`sq`",
    "SHOW CREATE DATABASE r1",
    "SHOW CREATE DATABASE IF NOT EXISTS `r1`",
    "show index from `r1`.`nothing`",
    "show columns from r1.ex",
    "SHOW COLUMNS FROM r1.t1 LIKE 'a%'",
    "SHOW TABLES FROM r1 LIKE 'p%'",
    "SHOW DATABASES",
    "USE r1",
    "SELECT DATABASE(), @@collation_database",
    "SELECT engine, table_type FROM INFORMATION_SCHEMA.TABLES WHERE table_schema = DATABASE() AND table_name = 't1'",
    "select column_name, extra, generation_expression, data_type from information_schema.columns where "
    "table_schema=database() and table_name='t1' order by ordinal_position",
    "SELECT table_name, column_name, ordinal_position, column_default, is_nullable, data_type, "
    "character_maximum_length, character_octet_length, numeric_precision, numeric_scale, datetime_precision, "
    "character_set_name, collation_name, column_type, column_key, extra, column_comment, is_generated, "
    "generation_expression FROM information_schema.columns WHERE table_schema='r1' "
    "ORDER BY table_name, ordinal_position",
    "SELECT table_name, table_type, engine, row_format, table_collation, create_options, table_comment, temporary "
    "FROM information_schema.tables WHERE table_schema='r1' ORDER BY 1",
    "SELECT table_name, non_unique, index_name, seq_in_index, column_name, collation, sub_part, nullable, index_type, "
    "index_comment, ignored FROM information_schema.statistics WHERE table_schema='r1' ORDER BY 1, 3, 4",
    "SELECT * FROM information_schema.check_constraints WHERE constraint_schema='r1' ORDER BY table_name, "
    "constraint_name",
    "SELECT * FROM information_schema.key_column_usage WHERE table_schema='r1' ORDER BY table_name, constraint_name, "
    "ordinal_position",
    "SELECT * FROM information_schema.table_constraints WHERE table_schema='r1' ORDER BY table_name, constraint_type, "
    "constraint_name",
    "SELECT * FROM information_schema.referential_constraints WHERE constraint_schema='r1' ORDER BY constraint_name",
    "SELECT table_name, partition_name, subpartition_name, partition_ordinal_position, partition_method, "
    "subpartition_method, partition_expression, partition_description, partition_comment FROM "
    "information_schema.partitions WHERE table_schema='r1' ORDER BY 1, 4, 3",
    # MariaDB Connector/J: getTables, getColumns, getPrimaryKeys, getIndexInfo, getImportedKeys, getCatalogs
    "SELECT TABLE_SCHEMA TABLE_CAT, NULL TABLE_SCHEM, TABLE_NAME, IF(TABLE_TYPE='BASE TABLE' or TABLE_TYPE="
    "'SYSTEM VERSIONED', 'TABLE', IF(TABLE_TYPE='TEMPORARY', 'LOCAL TEMPORARY', TABLE_TYPE)) as TABLE_TYPE, "
    "TABLE_COMMENT REMARKS, NULL TYPE_CAT FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'r1' AND TABLE_TYPE IN "
    "('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY TABLE_TYPE, TABLE_SCHEMA, TABLE_NAME",
    "SELECT TABLE_SCHEMA TABLE_CAT, TABLE_NAME, COLUMN_NAME, CASE data_type WHEN 'bit' THEN -7 WHEN 'date' THEN 91 "
    "WHEN 'int' THEN 4 WHEN 'varchar' THEN 12 WHEN 'tinyint' THEN IF(COLUMN_TYPE like 'tinyint(1)%',-7,-6) ELSE 1111 "
    "END DATA_TYPE, IF(COLUMN_TYPE like 'tinyint(1)%', 'BIT', UCASE(IF( COLUMN_TYPE LIKE '%(%)%', CONCAT(SUBSTRING( "
    "COLUMN_TYPE,1, LOCATE('(', COLUMN_TYPE) - 1 ), SUBSTRING(COLUMN_TYPE, 1+locate(')', COLUMN_TYPE))), "
    "COLUMN_TYPE))) TYPE_NAME, CASE DATA_TYPE WHEN 'time' THEN IF(DATETIME_PRECISION = 0, 10, CAST(11 + "
    "DATETIME_PRECISION as signed integer)) WHEN 'date' THEN 10 WHEN 'year' THEN 4 ELSE IF(NUMERIC_PRECISION IS NULL, "
    "LEAST(CHARACTER_MAXIMUM_LENGTH,2147483647), NUMERIC_PRECISION) END COLUMN_SIZE, CONVERT (CASE DATA_TYPE WHEN "
    "'year' THEN NUMERIC_SCALE WHEN 'tinyint' THEN 0 ELSE NUMERIC_SCALE END, UNSIGNED INTEGER) DECIMAL_DIGITS, "
    "IF(IS_NULLABLE = 'yes',1,0) NULLABLE, LEAST(CHARACTER_OCTET_LENGTH,2147483647) CHAR_OCTET_LENGTH, IF(EXTRA in "
    "('VIRTUAL', 'PERSISTENT', 'VIRTUAL GENERATED', 'STORED GENERATED') ,'YES','NO') IS_GENERATEDCOLUMN FROM "
    "INFORMATION_SCHEMA.COLUMNS WHERE (ISNULL(database()) OR (TABLE_SCHEMA = 'r1')) AND TABLE_NAME LIKE 't%' AND "
    "COLUMN_NAME LIKE '%' ORDER BY TABLE_CAT, TABLE_NAME, ORDINAL_POSITION",
    "SELECT A.TABLE_SCHEMA TABLE_CAT, A.TABLE_NAME, A.COLUMN_NAME, B.SEQ_IN_INDEX KEY_SEQ, B.INDEX_NAME PK_NAME FROM "
    "INFORMATION_SCHEMA.COLUMNS A, INFORMATION_SCHEMA.STATISTICS B WHERE A.COLUMN_KEY in ('PRI','pri') AND "
    "B.INDEX_NAME='PRIMARY' AND A.TABLE_SCHEMA = 'r1' AND B.TABLE_SCHEMA = 'r1' AND A.TABLE_NAME = 't1' AND "
    "B.TABLE_NAME = 't1' AND A.TABLE_SCHEMA = B.TABLE_SCHEMA AND A.TABLE_NAME = B.TABLE_NAME AND A.COLUMN_NAME = "
    "B.COLUMN_NAME ORDER BY A.COLUMN_NAME",
    "SELECT TABLE_SCHEMA TABLE_CAT, TABLE_NAME, NON_UNIQUE, INDEX_NAME, 3 TYPE, SEQ_IN_INDEX ORDINAL_POSITION, "
    "COLUMN_NAME, COLLATION ASC_OR_DESC FROM INFORMATION_SCHEMA.STATISTICS WHERE TABLE_NAME = 't1' AND TABLE_SCHEMA "
    "= 'r1' ORDER BY NON_UNIQUE, TYPE, INDEX_NAME, ORDINAL_POSITION",
    "SELECT KCU.REFERENCED_TABLE_SCHEMA PKTABLE_CAT, KCU.REFERENCED_TABLE_NAME PKTABLE_NAME, "
    "KCU.REFERENCED_COLUMN_NAME PKCOLUMN_NAME, KCU.TABLE_NAME FKTABLE_NAME, KCU.COLUMN_NAME FKCOLUMN_NAME, "
    "KCU.POSITION_IN_UNIQUE_CONSTRAINT KEY_SEQ, CASE update_rule WHEN 'RESTRICT' THEN 1 WHEN 'NO ACTION' THEN 3 WHEN "
    "'CASCADE' THEN 0 WHEN 'SET NULL' THEN 2 END UPDATE_RULE, RC.CONSTRAINT_NAME FK_NAME, RC.UNIQUE_CONSTRAINT_NAME "
    "PK_NAME FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE KCU INNER JOIN INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS RC ON "
    "KCU.CONSTRAINT_SCHEMA = RC.CONSTRAINT_SCHEMA AND KCU.CONSTRAINT_NAME = RC.CONSTRAINT_NAME WHERE "
    "KCU.TABLE_SCHEMA = 'r1' AND KCU.TABLE_NAME = 'f' ORDER BY PKTABLE_CAT, PKTABLE_NAME, FK_NAME, KEY_SEQ",
    "SELECT SCHEMA_NAME TABLE_CAT FROM INFORMATION_SCHEMA.SCHEMATA WHERE SCHEMA_NAME NOT IN ('sys') ORDER BY 1",
    # other tools: joins, groups, subqueries, unions
    "SELECT DISTINCT t.table_name FROM information_schema.tables t LEFT JOIN information_schema.table_constraints c ON "
    "t.table_schema=c.table_schema AND t.table_name=c.table_name AND c.constraint_type='PRIMARY KEY' WHERE "
    "t.table_schema='r1' AND c.constraint_name IS NULL ORDER BY t.table_name",
    "SELECT s.TABLE_NAME, s.INDEX_NAME, COUNT(*), MAX(s.SEQ_IN_INDEX) FROM information_schema.STATISTICS s WHERE "
    "s.TABLE_SCHEMA='r1' GROUP BY s.TABLE_NAME, s.INDEX_NAME ORDER BY 1, 2",
    "SELECT k.CONSTRAINT_NAME, k.COLUMN_NAME FROM information_schema.key_column_usage k WHERE EXISTS (SELECT 1 FROM "
    "information_schema.table_constraints c WHERE c.constraint_name = k.constraint_name AND "
    "c.table_schema=k.table_schema AND c.table_name=k.table_name AND c.constraint_type='FOREIGN KEY') AND "
    "k.table_schema='r1' ORDER BY 1",
    "SELECT (SELECT COUNT(*) FROM information_schema.columns c WHERE c.table_schema=t.table_schema AND "
    "c.table_name=t.table_name) n, t.table_name FROM information_schema.tables t WHERE t.table_schema='r1' AND "
    "t.table_type='BASE TABLE' ORDER BY t.table_name",
    "SELECT table_schema, COUNT(*) n FROM information_schema.tables WHERE table_schema IN ('r1','nodb') GROUP BY "
    "table_schema HAVING n > 1",
    "SET @n = (SELECT COUNT(*) FROM r1.bits), @t = (SELECT MAX(table_name) FROM information_schema.tables WHERE "
    "table_schema = 'r1')",
    "SELECT @n + 1, @t",
    "(SELECT table_name FROM information_schema.tables WHERE table_schema='r1' AND table_name='f') UNION ALL "
    "(SELECT 'zz') ORDER BY 1",
    "SELECT 1 FROM information_schema.tables WHERE table_schema='R1'",
    "SELECT 1 FROM information_schema.columns WHERE table_schema='r1' AND table_name='f' AND column_name='A'",
    "SELECT table_name FROM information_schema.tables WHERE table_schema='r1' AND table_name LIKE 'V\\_%' OR "
    "table_name = 'nothing'",
    "SELECT nocol FROM information_schema.tables",
    "SELECT table_name FROM information_schema.tables WHERE nocol=1",
    "SELECT table_name FROM information_schema.tables a, information_schema.columns b",
    "SELECT table_name FROM information_schema.nothing",
    "SELECT nofunc(table_name) FROM information_schema.tables",
    "SELECT table_name FROM information_schema.tables ORDER BY 9",
    "LOCK TABLES r1.nothing READ",
    "SELECT nocol FROM r1.p",
    "SELECT p.id FROM r1.p AS x",
    "SELECT id FROM r1.p WHERE nocol = 1",
    "SELECT * FROM r1.nothing",
    "SELECT * FROM nodb.p",
)
#: Prepared with a value for each `?`: the same rows in the binary protocol.
PREPARED: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("SELECT 1, 1.50, -3, 18446744073709551615, 1e20, 0x4142, NULL", ()),
    ("SELECT 'a' LIKE ?", ("A%",)),
    ("SELECT table_name FROM information_schema.tables WHERE table_schema=? ORDER BY 1", ("r1",)),
    (
        "SELECT column_name, ordinal_position, numeric_precision, column_default FROM information_schema.columns WHERE "
        "table_schema=? AND table_name=? ORDER BY ordinal_position LIMIT ?",
        ("r1", "t1", 5),
    ),
    ("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema=?", ("r1",)),
    ("SHOW TABLES FROM r1 LIKE 'p%'", ()),
    ("SHOW CREATE TABLE r1.f", ()),
    ("SELECT TIMEDIFF('10:00:00','09:00:00')", ()),
    ("SELECT 1 LIMIT ?", (0,)),
    ("SET @a = ?", (7,)),
    ("KILL ?", (99999999,)),
    ("SELEC 1", ()),
    ("SELECT 1; SELECT 2", ()),
    ("", ()),
    ("SELECT ? FROM nodb.t", (1,)),
)
