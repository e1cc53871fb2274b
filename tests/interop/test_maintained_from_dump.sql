-- [before]
CREATE DATABASE d;;
CREATE TABLE d.t (id INT PRIMARY KEY, word VARCHAR(20), n DECIMAL(9,2), at DATETIME(3)) CHARSET utf8mb4;;
CREATE TABLE d.keyless (a INT, b VARBINARY(9));;
CREATE TABLE d.emptied (id INT PRIMARY KEY);;
CREATE TABLE d.`odd, one` (id INT PRIMARY KEY, e ENUM('x','y'), s SET('a','b'));;
INSERT INTO d.t VALUES (1, 'é', 1.25, '2026-01-02 03:04:05.678'), (2, NULL, NULL, NULL), (3, '漢', -7, NULL);;
INSERT INTO d.keyless VALUES (1, 'a'), (1, 'a'), (2, x'00ff');;
INSERT INTO d.emptied VALUES (1), (2);;
INSERT INTO d.`odd, one` VALUES (1, 'x', 'a,b');;
-- [after]
UPDATE d.t SET n = n + 1 WHERE id < 3;;
DELETE FROM d.t WHERE id = 3;;
ALTER TABLE d.t ADD more INT;;
INSERT INTO d.t VALUES (4, 'four', 4, NULL, 44);;
DELETE FROM d.keyless WHERE a = 1 LIMIT 1;;
TRUNCATE d.emptied;;
INSERT INTO d.emptied VALUES (3);;
CREATE TABLE d.late (id INT PRIMARY KEY);;
INSERT INTO d.late VALUES (1);;
