-- [before]
CREATE DATABASE shop;;
CREATE DATABASE `old stock` CHARACTER SET latin1;;
CREATE TABLE shop.orders (
        id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, total DECIMAL(10,2) NOT NULL DEFAULT 0.00,
        note VARCHAR(40), made DATETIME(3) DEFAULT '2020-01-01 00:00:00', seen TIMESTAMP(6) NULL,
        state ENUM('new','it''s paid','sent') DEFAULT 'new' COMMENT 'where it is', marks SET('gift','express'),
        KEY by_state (state, made));;
CREATE TABLE shop.items (
        order_id BIGINT UNSIGNED NOT NULL, number SMALLINT NOT NULL, article CHAR(8) CHARACTER SET latin1 NOT NULL,
        amount INT UNSIGNED NOT NULL DEFAULT 1, weight FLOAT, price DOUBLE, PRIMARY KEY (order_id, number),
        UNIQUE KEY by_article (article, order_id), CONSTRAINT of_order FOREIGN KEY (order_id) REFERENCES orders (id))
        COMMENT='what was ordered';;
CREATE TABLE shop.kinds (
        k TINYINT UNSIGNED PRIMARY KEY, flags BIT(10), y YEAR, d DATE, t TIME(2), fixed BINARY(3), bytes VARBINARY(20),
        body TEXT, picture BLOB, facts JSON, u UUID, n NUMERIC(20,5), m MEDIUMINT ZEROFILL, b BOOLEAN);;
CREATE TABLE `old stock`.`on hand` (article CHAR(8) PRIMARY KEY, amount INT);;
INSERT INTO shop.orders (total, note, seen, marks) VALUES (9.90, 'a', '2020-01-02 03:04:05.678', 'gift');;
INSERT INTO shop.orders (note, state) VALUES ('schön', 'it''s paid'), (NULL, NULL), ('', 'sent');;
INSERT INTO shop.items VALUES (1, 1, 'lämp', 2, 0.5, 1.25), (1, 2, 'table', 1, 12.75, NULL);;
INSERT INTO shop.items (order_id, number, article) VALUES (2, 1, 'chair'), (3, 1, 'bed');;
INSERT INTO shop.kinds VALUES (1, b'1000000001', 2024, '2020-02-29', '-12:30:45.25', 'ab', x'00ff27',
        'long', x'0102', '{"a": [1, null]}', '123e4567-e89b-12d3-a456-426655440000', -1.5, 7, TRUE);;
INSERT INTO shop.kinds (k) VALUES (2);;
INSERT INTO `old stock`.`on hand` VALUES ('lämp', 5), ('table', 0);;
ALTER TABLE shop.orders ADD COLUMN customer INT NOT NULL DEFAULT 7 AFTER id, CHANGE note remark VARCHAR(60);;
UPDATE shop.orders SET customer = 8, remark = 'b' WHERE id = 1;;
ALTER TABLE shop.items MODIFY amount BIGINT UNSIGNED NOT NULL DEFAULT 1, DROP COLUMN weight;;
RENAME TABLE `old stock`.`on hand` TO shop.stock;;
DELETE FROM shop.items WHERE order_id = 3;;
CREATE TABLE shop.gone (id INT PRIMARY KEY);;
INSERT INTO shop.gone VALUES (1);;
DROP TABLE shop.gone;;
CREATE TABLE shop.copied LIKE shop.orders;;
INSERT INTO shop.copied SELECT * FROM shop.orders;;
TRUNCATE TABLE shop.copied;;
INSERT INTO shop.copied (customer, remark) VALUES (1, 'only');;
-- [after]
UPDATE shop.items SET amount = amount + 1 WHERE order_id = 1;;
ALTER TABLE shop.orders ADD COLUMN paid BOOLEAN DEFAULT FALSE, RENAME COLUMN customer TO buyer;;
INSERT INTO shop.orders (buyer, total, paid) VALUES (9, 12.34, TRUE);;
CREATE TABLE shop.later (id INT PRIMARY KEY, label VARCHAR(10) CHARACTER SET latin1);;
INSERT INTO shop.later VALUES (1, 'größer'), (2, NULL);;
DELETE FROM shop.kinds WHERE k = 2;;
UPDATE shop.stock SET amount = 1 WHERE article = 'table';;
