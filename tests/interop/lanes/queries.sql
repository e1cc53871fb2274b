-- tools: Debezium, Flink, Airbyte, Fivetran, Sqoop, Spark
SELECT COUNT(*) FROM shop.orders
SELECT COUNT(*) FROM `shop`.`customers` WHERE `active` = 1
SELECT MIN(id), MAX(id) FROM shop.orders
SELECT MAX(`id`) FROM (SELECT `id` FROM `shop`.`orders` WHERE `id` >= 20 ORDER BY `id` ASC LIMIT 15) AS T
SELECT MIN(`id`) FROM `shop`.`orders` WHERE `id` > 44
SELECT * FROM `shop`.`orders` WHERE `id` >= 20 AND NOT (`id` = 40) AND `id` <= 40 ORDER BY id
SELECT `id`, `customer_id`, `placed`, `status`, `total` FROM `shop`.`orders` WHERE `id` >= 1 AND `id` < 50 ORDER BY id
SELECT MIN(order_id), MAX(order_id) FROM items WHERE (1 = 1)
SELECT MIN(t.id), MAX(t.id) FROM (SELECT id, total FROM orders WHERE (1 = 1)) AS t
SELECT * FROM (SELECT id, total FROM orders WHERE total > 100) AS t WHERE (1 = 0)
SELECT * FROM (select id, name, credit from shop.customers) SPARK_GEN_SUBQ_0 WHERE 1=0
SELECT `id`,`total` FROM (SELECT id, total FROM orders) SPARK_GEN_SUBQ_1 WHERE (`id` < 50 or `id` is null) ORDER BY id
SELECT `id`,`total` FROM shop.orders WHERE (`total` IS NOT NULL) AND (`total` > 5000.00) ORDER BY `id`
SELECT `status`,COUNT(1) FROM shop.orders GROUP BY `status` ORDER BY `status`
SELECT SUM(`total`),AVG(`quantity`),MIN(`placed`) FROM shop.orders WHERE (`status` IS NOT NULL) AND (`status` = 'paid')
SELECT `customer_id`,SUM(`total`) FROM shop.orders WHERE `customer_id` IS NOT NULL GROUP BY `customer_id` ORDER BY `customer_id` ASC LIMIT 10
SELECT `id` FROM shop.orders WHERE (MOD(`id`, 4) = 1) ORDER BY `id`
SELECT id FROM orders WHERE MOD(id, 4) = 3 AND id > 10 ORDER BY id
SELECT id FROM orders WHERE CRC32(id) % 3 = 1 ORDER BY id
SELECT * FROM orders WHERE placed > '2024-06-01 00:00:00' ORDER BY placed, id LIMIT 20
SELECT id, placed FROM orders WHERE placed >= '2024-01-01' AND placed < '2024-07-01' ORDER BY placed ASC, id ASC
SELECT id, seen FROM customers WHERE seen > '2024-01-01 00:00:00' ORDER BY seen, id
SELECT MAX(placed) FROM orders
SELECT MAX(seen) FROM customers
SELECT id, status, total FROM orders ORDER BY status, id LIMIT 10 OFFSET 5
SELECT id FROM orders WHERE id > 10 ORDER BY id LIMIT 5, 10
SELECT COUNT(1) AS cnt FROM (SELECT * FROM orders WHERE id < 50) q
SELECT 1 FROM orders LIMIT 1
SELECT EXISTS(SELECT 1 FROM orders WHERE total < 0)
SELECT EXISTS (SELECT * FROM customers WHERE email = 'nobody')
SELECT id FROM customers WHERE email = 'ANN1@EXAMPLE.COM'
SELECT id, name FROM customers WHERE name = 'ann' ORDER BY id
SELECT id, city FROM customers WHERE city = 'KÖLN' ORDER BY id
SELECT id FROM customers WHERE nick = 'SSETA' ORDER BY id
SELECT id FROM customers WHERE code = 'a-1' ORDER BY id
SELECT id FROM customers WHERE tier = 'GOLD' ORDER BY id
SELECT id, tags FROM customers WHERE tags = 'vip,b2b' ORDER BY id
SELECT id FROM customers WHERE country IN ('DE', 'FR') AND active ORDER BY id
SELECT `order_id`,`line_no` FROM items WHERE (`order_id`, `line_no`) > (10, 1) ORDER BY order_id, line_no LIMIT 10
SELECT order_id, line_no FROM items WHERE order_id > 10 OR (order_id = 10 AND line_no > 1) ORDER BY order_id, line_no LIMIT 10
SELECT order_id, line_no FROM items WHERE (order_id, line_no) IN ((1,1),(2,1),(3,2)) ORDER BY 1, 2
SELECT CAST(id AS CHAR) AS k FROM orders WHERE id < 5 ORDER BY id
SELECT id, UNIX_TIMESTAMP(placed) FROM orders WHERE id < 10 ORDER BY id
SELECT id FROM orders WHERE UNIX_TIMESTAMP(placed) > 1710000000 ORDER BY id
SELECT COALESCE(MAX(id), 0) FROM empty_one
SELECT COUNT(*), SUM(d), AVG(d), MIN(v), MAX(v), GROUP_CONCAT(v) FROM empty_one
SELECT v, COUNT(*) FROM empty_one GROUP BY v
SELECT * FROM empty_one
SELECT DISTINCT status FROM orders ORDER BY status
SELECT COUNT(DISTINCT status) FROM orders
SELECT COUNT(DISTINCT customer_id), COUNT(DISTINCT placed), COUNT(DISTINCT total) FROM orders
SELECT COUNT(DISTINCT city), COUNT(DISTINCT nick), COUNT(DISTINCT code), COUNT(DISTINCT tier) FROM customers
-- Grafana, Metabase, dbt, DBeaver, SQLAlchemy
SELECT DATE(placed) AS `time`, COUNT(*) AS n FROM orders WHERE placed BETWEEN '2024-01-01' AND '2024-12-31' GROUP BY 1 ORDER BY 1
SELECT UNIX_TIMESTAMP(placed) DIV 86400 * 86400 AS time_sec, SUM(total) AS value FROM orders GROUP BY 1 ORDER BY 1
SELECT UNIX_TIMESTAMP(placed) AS time_sec, total AS value, status AS metric FROM orders WHERE placed >= FROM_UNIXTIME(1700000000) AND placed <= FROM_UNIXTIME(1720000000) ORDER BY placed, id
SELECT DATE_FORMAT(placed, '%Y-%m') AS month, SUM(total) AS revenue FROM orders GROUP BY month ORDER BY month
SELECT DATE_FORMAT(placed, '%Y-%m-01') AS m, COUNT(*) FROM orders GROUP BY DATE_FORMAT(placed, '%Y-%m-01') ORDER BY 1
SELECT YEAR(placed) y, MONTH(placed) m, COUNT(*) n FROM orders GROUP BY YEAR(placed), MONTH(placed) ORDER BY y, m
SELECT QUARTER(placed) q, AVG(total) FROM orders GROUP BY q ORDER BY q
SELECT STR_TO_DATE(CONCAT(DATE_FORMAT(placed, '%Y-%m'), '-01'), '%Y-%m-%d') AS m, COUNT(*) FROM orders GROUP BY m ORDER BY m
SELECT `shop`.`orders`.`status` AS `status`, COUNT(*) AS `count` FROM `shop`.`orders` GROUP BY `shop`.`orders`.`status` ORDER BY `count` DESC, `shop`.`orders`.`status` ASC
SELECT `source`.`status` AS `status`, SUM(`source`.`total`) AS `sum` FROM (SELECT `orders`.`status` AS `status`, `orders`.`total` AS `total` FROM `orders`) `source` GROUP BY `source`.`status` ORDER BY `source`.`status` ASC
SELECT anon_1.id AS anon_1_id, anon_1.total AS anon_1_total FROM (SELECT orders.id AS id, orders.total AS total FROM orders WHERE orders.total > 1000) AS anon_1 ORDER BY anon_1.id LIMIT 10
SELECT orders.id AS orders_id, customers_1.name AS customers_1_name FROM orders LEFT OUTER JOIN customers AS customers_1 ON customers_1.id = orders.customer_id ORDER BY orders.id
SELECT count(*) AS count_1 FROM (SELECT orders.id AS orders_id FROM orders WHERE orders.status = 'paid') AS anon_1
SELECT customers.id AS customers_id, customers.name AS customers_name FROM customers WHERE customers.name LIKE 'ann%' ORDER BY customers.id
SELECT customers.id FROM customers WHERE lower(customers.email) LIKE lower('ANN%') ORDER BY customers.id
SELECT EXISTS (SELECT 1 FROM orders WHERE orders.customer_id = 7) AS anon_1
with orders_cte as (select * from orders), agg as (select customer_id, sum(total) as total from orders_cte group by customer_id) select c.id, c.name, agg.total from customers c left join agg on agg.customer_id = c.id order by c.id
with final as (select status, count(*) as n from orders group by status) select * from final order by n desc, status
select count(*) as failures, count(*) != 0 as should_warn, count(*) != 0 as should_error from (select id from orders where id is null) dbt_internal_test
select count(*) as failures from (select customer_id as unique_field, count(*) as n_records from orders where customer_id is not null group by customer_id having count(*) > 1) t
select count(*) from (select from_field from (select customer_id as from_field from orders where customer_id is not null) child left join (select id as to_field from customers) parent on child.from_field = parent.to_field where parent.to_field is null) t
with all_values as (select status as value_field, count(*) as n_records from orders group by status) select * from all_values where value_field not in ('new','paid','shipped') order by value_field
SELECT x.* FROM shop.orders x WHERE x.status='paid' ORDER BY x.total DESC, x.id LIMIT 200
SELECT t.* FROM shop.products t WHERE t.title LIKE '%chair%' ORDER BY t.id LIMIT 200
SELECT COUNT(*) FROM shop.products WHERE title LIKE '%_score'
SELECT id, title FROM products WHERE title LIKE '100\%%' ORDER BY id
SELECT id, title FROM products WHERE title LIKE 'under|_%' ESCAPE '|' ORDER BY id
SELECT id, title FROM products WHERE title NOT LIKE '%a%' ORDER BY id
-- mysqld_exporter and monitoring
SELECT status, COUNT(*) AS total, IFNULL(SUM(total), 0) AS amount FROM orders GROUP BY status ORDER BY status
SELECT COUNT(*) AS n, UNIX_TIMESTAMP(MAX(placed)) AS last FROM orders
SELECT SUM(CASE WHEN status = 'paid' THEN 1 ELSE 0 END) AS paid, SUM(CASE WHEN status <> 'paid' THEN 1 ELSE 0 END) AS other FROM orders
SELECT SUM(status = 'paid') AS paid, SUM(total > 1000) AS large FROM orders
SELECT SUM(IF(shipped IS NULL, 1, 0)) AS open_orders, COUNT(shipped) AS shipped FROM orders
-- analysts: joins
SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer_id ORDER BY o.id
SELECT o.id, c.name, c.city FROM orders o INNER JOIN customers c ON o.customer_id = c.id WHERE c.city = 'berlin' ORDER BY o.id
SELECT o.id, i.line_no, p.title, i.qty * i.price AS amount FROM orders o JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id ORDER BY o.id, i.line_no
SELECT c.id, COUNT(o.id) AS n FROM customers c LEFT JOIN orders o ON o.customer_id = c.id GROUP BY c.id ORDER BY n DESC, c.id
SELECT c.id, c.name, COUNT(o.id) AS n, SUM(o.total) AS s FROM customers c LEFT JOIN orders o ON o.customer_id = c.id GROUP BY c.id, c.name ORDER BY c.id
SELECT c.id, c.name FROM customers c LEFT JOIN orders o ON o.customer_id = c.id WHERE o.id IS NULL ORDER BY c.id
SELECT p.id, p.title, cat.name FROM products p LEFT JOIN categories cat ON cat.id = p.category_id ORDER BY p.id
SELECT a.name, b.name AS parent FROM categories a LEFT JOIN categories b ON a.parent_id = b.id ORDER BY a.id
SELECT cat.name, COUNT(*) FROM products p, categories cat WHERE p.category_id = cat.id GROUP BY cat.id, cat.name ORDER BY cat.id
SELECT a.id, b.id FROM customers a JOIN customers b ON a.city = b.city AND a.id < b.id WHERE a.id < 10 ORDER BY a.id, b.id
SELECT a.id, b.id FROM customers a JOIN customers b ON a.name = b.name AND a.id < b.id WHERE a.id < 15 ORDER BY 1, 2
SELECT i.order_id, SUM(i.qty * i.price) AS s FROM items i JOIN orders o ON o.id = i.order_id WHERE o.status = 'paid' GROUP BY i.order_id ORDER BY s DESC, i.order_id LIMIT 10
SELECT * FROM items NATURAL JOIN (SELECT id AS order_id, status FROM orders) t ORDER BY order_id, line_no LIMIT 10
SELECT order_id, status FROM items JOIN (SELECT id AS order_id, status FROM orders) t USING (order_id) ORDER BY order_id, status LIMIT 10
SELECT c.id, o.id FROM orders o RIGHT JOIN customers c ON c.id = o.customer_id ORDER BY c.id, o.id LIMIT 20
SELECT COUNT(*) FROM categories a CROSS JOIN categories b
SELECT COUNT(*) FROM categories, products
SELECT c.name, o.total FROM customers c JOIN orders o ON o.customer_id = c.id AND o.total > 5000 ORDER BY o.total, o.id
SELECT o.status, p.title, SUM(i.qty) FROM orders o JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id GROUP BY o.status, p.title ORDER BY o.status, p.title
SELECT c.country, COUNT(DISTINCT o.id), SUM(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id GROUP BY c.country ORDER BY c.country
SELECT STRAIGHT_JOIN o.id FROM orders o JOIN customers c ON c.id = o.customer_id WHERE c.active = 1 ORDER BY o.id LIMIT 5
SELECT o.id FROM orders o WHERE o.customer_id IN (SELECT id FROM customers WHERE active = 1) ORDER BY o.id
SELECT o.id FROM orders o WHERE o.customer_id NOT IN (SELECT id FROM customers WHERE active = 1) ORDER BY o.id
SELECT id FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.total > 9000) ORDER BY id
SELECT id FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id) ORDER BY id
SELECT id, (SELECT COUNT(*) FROM orders o WHERE o.customer_id = c.id) AS n FROM customers c ORDER BY id
SELECT id, (SELECT MAX(o.total) FROM orders o WHERE o.customer_id = c.id) AS m FROM customers c ORDER BY id
SELECT id, total FROM orders WHERE total > (SELECT AVG(total) FROM orders) ORDER BY id
SELECT id, total FROM orders WHERE total = (SELECT MAX(total) FROM orders)
SELECT id, total - (SELECT AVG(total) FROM orders) AS diff FROM orders WHERE id < 6 ORDER BY id
SELECT name FROM categories WHERE id IN (SELECT category_id FROM products WHERE price > 500) ORDER BY id
SELECT id FROM customers WHERE name IN (SELECT name FROM customers WHERE id < 5) ORDER BY id
SELECT id FROM products p WHERE price > (SELECT AVG(price) FROM products q WHERE q.category_id = p.category_id) ORDER BY id
SELECT t.status, t.n FROM (SELECT status, COUNT(*) AS n FROM orders GROUP BY status) t WHERE t.n > 20 ORDER BY t.status
SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM orders GROUP BY customer_id) t
SELECT MAX(s) FROM (SELECT SUM(total) AS s FROM orders GROUP BY customer_id) t
-- analysts: groups
SELECT status, COUNT(*) FROM orders GROUP BY status HAVING COUNT(*) > 20 ORDER BY status
SELECT status, COUNT(*) AS n FROM orders GROUP BY status HAVING n > 20 ORDER BY n DESC, status
SELECT status, SUM(total) AS s FROM orders GROUP BY status HAVING s > 50000 AND COUNT(*) < 45 ORDER BY s
SELECT customer_id, COUNT(*) FROM orders GROUP BY customer_id ORDER BY COUNT(*) DESC, customer_id LIMIT 5
SELECT season, COUNT(*), MIN(took), MAX(took) FROM orders GROUP BY season ORDER BY season
SELECT priority % 3 AS p, COUNT(*) FROM orders GROUP BY p ORDER BY p
SELECT priority DIV 50 AS p, COUNT(*), SUM(quantity) FROM orders GROUP BY priority DIV 50 ORDER BY 1
SELECT tier, COUNT(*) FROM customers GROUP BY tier ORDER BY tier
SELECT tags, COUNT(*) FROM customers GROUP BY tags ORDER BY tags
SELECT city, COUNT(*) FROM customers GROUP BY city ORDER BY city
SELECT name, COUNT(*) FROM customers GROUP BY name ORDER BY name
SELECT nick, COUNT(*) FROM customers GROUP BY nick ORDER BY nick
SELECT code, COUNT(*) FROM customers GROUP BY code ORDER BY code
SELECT kind, COUNT(*), SUM(amount), AVG(amount) FROM events GROUP BY kind ORDER BY kind
SELECT active, tier, COUNT(*), AVG(credit) FROM customers GROUP BY active, tier ORDER BY active, tier
SELECT shipped IS NULL AS open, COUNT(*) FROM orders GROUP BY open ORDER BY open
SELECT status, MIN(note), MAX(note) FROM orders GROUP BY status ORDER BY status
SELECT country, MIN(name), MAX(city) FROM customers GROUP BY country ORDER BY country
SELECT status, AVG(total), MIN(total), MAX(total), SUM(total), COUNT(total) FROM orders GROUP BY status ORDER BY status
SELECT status, AVG(quantity), SUM(quantity), AVG(priority), SUM(priority) FROM orders GROUP BY status ORDER BY status
SELECT AVG(discount), SUM(discount), MAX(discount) FROM orders
SELECT SUM(cost), AVG(cost), MIN(cost), SUM(stock), AVG(stock) FROM products
SELECT SUM(big) FROM events WHERE big < 1000000
SELECT SUM(id), AVG(id) FROM events
SELECT status, GROUP_CONCAT(id ORDER BY id) FROM orders GROUP BY status ORDER BY status
SELECT GROUP_CONCAT(DISTINCT status ORDER BY status SEPARATOR '|') FROM orders
SELECT customer_id, GROUP_CONCAT(total ORDER BY total DESC SEPARATOR ';') FROM orders WHERE customer_id < 10 GROUP BY customer_id ORDER BY customer_id
SELECT SUM(DISTINCT priority) FROM orders
SELECT COUNT(*) FROM orders WHERE total IS NULL
SELECT COUNT(total), COUNT(*), COUNT(*) - COUNT(total) AS missing FROM orders
SELECT MIN(tier), MAX(tier) FROM customers
SELECT MIN(born), MAX(born) FROM customers
SELECT MIN(at), MAX(at) FROM events
SELECT MIN(ref), MAX(ref) FROM customers
SELECT MAX(flags) FROM customers
SELECT SUM(active) / COUNT(*) FROM customers
SELECT SUM(total) / SUM(quantity) FROM orders WHERE quantity > 0
SELECT ROUND(AVG(total), 2) FROM orders
SELECT ROUND(SUM(total) / COUNT(DISTINCT customer_id), 2) FROM orders
SELECT status, ROUND(100 * COUNT(*) / (SELECT COUNT(*) FROM orders), 1) AS pct FROM orders GROUP BY status ORDER BY status
SELECT DISTINCT city FROM customers ORDER BY city
SELECT DISTINCT tier, active FROM customers ORDER BY tier, active
SELECT DISTINCT YEAR(placed) FROM orders ORDER BY 1
SELECT DISTINCT customer_id FROM orders ORDER BY customer_id DESC LIMIT 5
SELECT DISTINCT priority > 100 AS high FROM orders ORDER BY high
-- analysts: expressions
SELECT id, total * 1.19 AS gross FROM orders WHERE id < 20 ORDER BY id
SELECT id, total * (1 - discount) FROM orders WHERE id < 30 ORDER BY id
SELECT id, total / quantity FROM orders WHERE id < 30 ORDER BY id
SELECT id, quantity / 3, quantity / 7, quantity % 7, quantity DIV 7 FROM orders WHERE id < 30 ORDER BY id
SELECT id, total / 3 * 3, total / 7 / 7 FROM orders WHERE id < 30 ORDER BY id
SELECT id, (total + 1) / (discount + 0.5) FROM orders WHERE id < 30 ORDER BY id
SELECT id, -total, -quantity, -weight FROM orders WHERE id < 30 ORDER BY id
SELECT id, weight * 2, weight + 1, weight / 3, weight - 0.1 FROM orders WHERE id < 60 ORDER BY id
SELECT id, total + weight FROM orders WHERE id < 60 ORDER BY id
SELECT id, quantity + priority, quantity - priority * 1 FROM orders WHERE quantity > 255 ORDER BY id
SELECT id, quantity + 1, quantity * 2, quantity * 2.5, quantity + 1e0 FROM orders ORDER BY id
SELECT id, ROUND(total), ROUND(total, 1), ROUND(total, -2), FLOOR(total), CEIL(total), TRUNCATE(total, 1), ABS(total), SIGN(total) FROM orders ORDER BY id
SELECT id, ROUND(weight), ROUND(weight, 1), FLOOR(weight), CEILING(weight), ABS(weight) FROM orders ORDER BY id
SELECT id, ROUND(quantity), ABS(quantity), FLOOR(quantity) FROM orders ORDER BY id
SELECT id, score, rating, score * 2, rating * 2, rating + 0 FROM customers ORDER BY id
SELECT id, amount * 2, amount / 3, amount + 0.5 FROM events ORDER BY id
SELECT id, big, big & 255, big | 1 FROM events ORDER BY id
SELECT id, ref, ref + 0, ref / 2 FROM customers WHERE ref < 1000000 ORDER BY id
SELECT id, flags + 0, flags FROM customers ORDER BY id
SELECT id, born, YEAR(born), MONTH(born), DAY(born) FROM customers ORDER BY id
SELECT id, tier + 0, tags + 0 FROM customers ORDER BY id
SELECT id, POW(quantity, 2), SQRT(quantity) FROM orders WHERE quantity > 0 ORDER BY id
SELECT id, GREATEST(quantity, priority), LEAST(total, 1000) FROM orders ORDER BY id
SELECT id, COALESCE(total, 0), IFNULL(note, '-'), IFNULL(quantity, 0), COALESCE(discount, total, 1) FROM orders ORDER BY id
SELECT id, NULLIF(status, 'new'), NULLIF(quantity, 10), NULLIF(total, 0) FROM orders ORDER BY id
SELECT id, IF(total > 1000, 'big', 'small'), IF(quantity, 1, 0.5) FROM orders ORDER BY id
SELECT id, CASE status WHEN 'new' THEN 1 WHEN 'paid' THEN 2 ELSE 3 END FROM orders ORDER BY id
SELECT id, CASE WHEN total > 5000 THEN 'large' WHEN total > 1000 THEN 'middle' ELSE 'small' END AS size FROM orders ORDER BY id
SELECT CASE WHEN total > 5000 THEN 'large' WHEN total > 1000 THEN 'middle' ELSE 'small' END AS size, COUNT(*) FROM orders GROUP BY size ORDER BY size
SELECT id, CASE WHEN total > 5000 THEN total WHEN quantity > 100 THEN quantity END AS v FROM orders ORDER BY id
SELECT id, total > 1000 AND status = 'paid', total > 1000 OR quantity > 50, NOT active FROM orders JOIN (SELECT 1 AS active) x ORDER BY id
SELECT id, total > 1000, total <=> NULL, status = 'NEW', note IS NULL FROM orders ORDER BY id
SELECT id FROM orders WHERE total > 1000 XOR quantity > 100 ORDER BY id
SELECT id FROM orders WHERE total BETWEEN 1000 AND 2000 ORDER BY id
SELECT id FROM orders WHERE NOT (total BETWEEN 1000 AND 2000) ORDER BY id
SELECT id FROM orders WHERE quantity IN (1, 2, 3, 50, NULL) ORDER BY id
SELECT id FROM orders WHERE quantity NOT IN (1, 2, 3, 50) ORDER BY id
SELECT id FROM orders WHERE status IN ('NEW', 'Lost') ORDER BY id
SELECT id FROM orders WHERE note = 'gift' ORDER BY id
SELECT id FROM orders WHERE note LIKE 'g_ft%' ORDER BY id
SELECT id FROM orders WHERE note LIKE '%Ü%' ORDER BY id
SELECT id FROM orders WHERE note <> '' ORDER BY id
SELECT id FROM orders WHERE note > 'call' ORDER BY id
SELECT id FROM orders WHERE note = 12 ORDER BY id
SELECT id FROM orders WHERE total = '8616.40' OR id = '5' ORDER BY id
SELECT id FROM orders WHERE took > '12:00:00' ORDER BY id
SELECT id FROM orders WHERE shipped = '2024-02-29' ORDER BY id
SELECT id FROM orders WHERE shipped >= DATE '2024-06-01' ORDER BY id
SELECT id FROM orders WHERE shipped > placed ORDER BY id
SELECT id FROM orders WHERE season = 2024 ORDER BY id
SELECT id FROM orders WHERE weight > 0.2 ORDER BY id
SELECT id FROM orders WHERE weight = 0.1 ORDER BY id
SELECT id FROM customers WHERE born = '0000-00-00' ORDER BY id
SELECT id FROM customers WHERE ref = 18446744073709551615 ORDER BY id
SELECT id FROM customers WHERE ref > 9223372036854775807 ORDER BY id
SELECT id FROM customers WHERE tier > 'bronze' ORDER BY id
SELECT id FROM customers WHERE tier = 2 ORDER BY id
SELECT id FROM customers WHERE tier IS NULL OR tier <> 'gold' ORDER BY id
SELECT id FROM customers WHERE tags LIKE '%vip%' ORDER BY id
SELECT id FROM customers WHERE FIND_IN_SET('vip', tags) ORDER BY id
SELECT id FROM customers WHERE avatar IS NOT NULL AND LENGTH(avatar) > 4 ORDER BY id
SELECT id, HEX(avatar), LENGTH(avatar) FROM customers ORDER BY id
SELECT id, guid, ip, doc FROM customers ORDER BY id
SELECT id, LENGTH(name), CHAR_LENGTH(name), UPPER(name), LOWER(city), REVERSE(nick) FROM customers ORDER BY id
SELECT id, CONCAT(name, ' <', email, '>') FROM customers ORDER BY id
SELECT id, CONCAT_WS(', ', name, email, code) FROM customers ORDER BY id
SELECT id, CONCAT(id, '-', credit, '-', score) FROM customers ORDER BY id
SELECT id, LEFT(email, 3), RIGHT(email, 4), SUBSTRING(email, 2, 3), SUBSTRING(email, -4), MID(email, 3, 2) FROM customers ORDER BY id
SELECT id, SUBSTRING_INDEX(email, '@', 1), SUBSTRING_INDEX(email, '@', -1) FROM customers ORDER BY id
SELECT SUBSTRING_INDEX(email, '@', -1) AS domain, COUNT(*) FROM customers GROUP BY domain ORDER BY domain
SELECT id, REPLACE(email, 'example', 'x'), TRIM(code), LPAD(id, 5, '0'), RPAD(country, 4, '.') FROM customers ORDER BY id
SELECT id, LOCATE('@', email), INSTR(email, 'com'), POSITION('a' IN email) FROM customers ORDER BY id
SELECT id, MD5(email), CRC32(email), HEX(code), SHA1(code) FROM customers ORDER BY id
SELECT id, TRIM(LEADING 'a' FROM email), LTRIM(notes), RTRIM(notes) FROM customers ORDER BY id
SELECT id, REPEAT(country, 2), FIELD(country, 'DE', 'FR'), ELT(active + 1, 'no', 'yes') FROM customers ORDER BY id
SELECT id, CAST(total AS SIGNED), CAST(total AS CHAR), CAST(quantity AS CHAR), CAST(quantity AS DECIMAL(10,2)) FROM orders ORDER BY id
SELECT id, CAST(placed AS DATE), CAST(total AS DECIMAL(20,4)), CONVERT(total, SIGNED), CAST(weight AS CHAR) FROM orders ORDER BY id
SELECT id, CAST(note AS SIGNED) FROM orders WHERE note LIKE '1%' ORDER BY id
SELECT id, note + 0 FROM orders WHERE note LIKE '1%' ORDER BY id
SELECT id, DATE(placed), TIME(placed), YEAR(placed), QUARTER(placed), MONTH(placed), WEEK(placed), DAY(placed), HOUR(placed), MINUTE(placed), SECOND(placed) FROM orders ORDER BY id
SELECT id, DAYOFWEEK(placed), WEEKDAY(placed), DAYOFYEAR(placed), DAYNAME(placed), MONTHNAME(placed), LAST_DAY(placed), TO_DAYS(placed) FROM orders ORDER BY id
SELECT id, DATE_ADD(placed, INTERVAL 1 DAY), DATE_SUB(placed, INTERVAL 2 HOUR), placed + INTERVAL 1 MONTH, shipped + INTERVAL 1 DAY, shipped - INTERVAL 1 YEAR FROM orders ORDER BY id
SELECT id, DATEDIFF(shipped, placed), TIMESTAMPDIFF(DAY, placed, shipped), TIMESTAMPDIFF(HOUR, placed, shipped), TIMESTAMPDIFF(MONTH, placed, shipped) FROM orders ORDER BY id
SELECT id, DATE_FORMAT(placed, '%Y-%m-%d %H:%i:%s'), DATE_FORMAT(placed, '%W %e %M %Y'), DATE_FORMAT(shipped, '%d.%m.%y') FROM orders ORDER BY id
SELECT id, EXTRACT(YEAR FROM placed), EXTRACT(MONTH FROM placed), EXTRACT(HOUR FROM placed) FROM orders ORDER BY id
SELECT id, FROM_UNIXTIME(UNIX_TIMESTAMP(placed)) FROM orders ORDER BY id
SELECT id, took, HOUR(took), MINUTE(took) FROM orders ORDER BY id
SELECT id, at, MICROSECOND(at), DATE(at), UNIX_TIMESTAMP(at) FROM events ORDER BY id
SELECT COUNT(*) FROM orders WHERE placed < NOW() AND placed < CURRENT_DATE
SELECT COUNT(*) FROM orders WHERE placed > DATE_SUB(NOW(), INTERVAL 50 YEAR)
SELECT DATE(placed) d, COUNT(*) FROM orders WHERE YEAR(placed) = 2024 AND MONTH(placed) IN (1, 2, 3) GROUP BY DATE(placed) ORDER BY d
SELECT WEEK(placed, 1) w, COUNT(*) FROM orders GROUP BY w ORDER BY w
SELECT HOUR(placed) h, COUNT(*) c FROM orders GROUP BY h HAVING c > 5 ORDER BY c DESC, h
SELECT 'a' AS lit, 1 AS one, NULL AS nothing, 1.50 AS dec_lit, id FROM orders WHERE id < 3 ORDER BY id
-- analysts: order
SELECT id, name FROM customers ORDER BY name, id
SELECT id, city FROM customers ORDER BY city DESC, id
SELECT id, nick FROM customers ORDER BY nick, id
SELECT id, code FROM customers ORDER BY code, id
SELECT id, tier FROM customers ORDER BY tier, id
SELECT id, tier FROM customers ORDER BY tier DESC, id DESC LIMIT 20
SELECT id, tags FROM customers ORDER BY tags, id
SELECT id, born FROM customers ORDER BY born, id
SELECT id, ref FROM customers ORDER BY ref DESC, id
SELECT id, score FROM customers ORDER BY score, id
SELECT id, rating FROM customers ORDER BY rating DESC, id
SELECT id, avatar FROM customers ORDER BY avatar, id
SELECT id, notes FROM customers ORDER BY notes, id
SELECT id, took FROM orders ORDER BY took, id
SELECT id, season FROM orders ORDER BY season DESC, id
SELECT id, total FROM orders ORDER BY total DESC, id LIMIT 10
SELECT id, total FROM orders ORDER BY total IS NULL, total, id LIMIT 30
SELECT id, amount FROM events ORDER BY amount, id
SELECT id FROM orders ORDER BY MOD(id, 7), id
SELECT id, quantity * 2 AS q FROM orders ORDER BY q DESC, id
SELECT id, status FROM orders ORDER BY FIELD(status, 'paid', 'new', 'lost'), id
SELECT id, placed FROM orders ORDER BY DATE(placed) DESC, id LIMIT 15
SELECT name FROM categories ORDER BY LENGTH(name), name
SELECT id, status FROM orders ORDER BY status COLLATE utf8mb4_bin, id
SELECT id FROM orders WHERE status COLLATE utf8mb4_bin = 'NEW' ORDER BY id
SELECT id FROM orders WHERE BINARY status = 'NEW' ORDER BY id
-- analysts: sets and windows
SELECT id FROM categories UNION SELECT id FROM products WHERE id < 10 ORDER BY id
SELECT id, name FROM categories UNION ALL SELECT id, title FROM products ORDER BY id, name
SELECT status AS v FROM orders UNION SELECT city FROM customers ORDER BY v
SELECT 'orders' AS t, COUNT(*) AS n FROM orders UNION ALL SELECT 'items', COUNT(*) FROM items UNION ALL SELECT 'customers', COUNT(*) FROM customers
SELECT price FROM products WHERE id < 5 UNION ALL SELECT total FROM orders WHERE id < 5
SELECT id, total FROM orders WHERE id < 3 UNION ALL SELECT id, score FROM customers WHERE id < 3
(SELECT id FROM orders ORDER BY id DESC LIMIT 3) UNION ALL (SELECT id FROM products ORDER BY id LIMIT 2) ORDER BY id
SELECT COUNT(*) FROM (SELECT id FROM orders UNION ALL SELECT id FROM products) u
SELECT id, ROW_NUMBER() OVER (ORDER BY placed, id) AS rn FROM orders ORDER BY id
SELECT id, customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY placed DESC, id) AS rn FROM orders ORDER BY id
SELECT * FROM (SELECT id, customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY placed DESC, id) AS rn FROM orders) t WHERE rn = 1 ORDER BY id
SELECT id, RANK() OVER (ORDER BY status) AS r, DENSE_RANK() OVER (ORDER BY status) AS d FROM orders ORDER BY id
SELECT id, SUM(total) OVER (ORDER BY id) AS running FROM orders ORDER BY id
SELECT id, SUM(quantity) OVER (PARTITION BY status ORDER BY id) AS running FROM orders ORDER BY id
SELECT id, total, LAG(total) OVER (ORDER BY id) AS prev, LEAD(total, 2) OVER (ORDER BY id) AS nxt FROM orders ORDER BY id
SELECT id, COUNT(*) OVER (PARTITION BY customer_id) AS n, AVG(total) OVER (PARTITION BY customer_id) AS a FROM orders ORDER BY id
SELECT status, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total_n FROM orders GROUP BY status ORDER BY status
SELECT id, MAX(total) OVER (PARTITION BY customer_id ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS m FROM orders ORDER BY id
WITH ranked AS (SELECT o.*, ROW_NUMBER() OVER (PARTITION BY status ORDER BY total DESC, id) AS rn FROM orders o) SELECT id, status, total FROM ranked WHERE rn <= 2 ORDER BY status, rn
WITH m AS (SELECT DATE_FORMAT(placed, '%Y-%m') AS month, SUM(total) AS s FROM orders GROUP BY 1) SELECT month, s, s - LAG(s) OVER (ORDER BY month) AS change_ FROM m ORDER BY month
WITH a AS (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id), b AS (SELECT n, COUNT(*) AS customers FROM a GROUP BY n) SELECT * FROM b ORDER BY n
-- errors that a server says as well
SELECT nothing FROM orders
SELECT o.nothing FROM orders o
SELECT id FROM orders, customers
SELECT COUNT(*) FROM nowhere
SELECT id FROM orders WHERE id = (SELECT id FROM customers)
SELECT id FROM orders UNION SELECT id, name FROM customers
SELECT id, COUNT(*) FROM orders WHERE COUNT(*) > 1 GROUP BY id
SELECT nofunction(id) FROM orders
SELECT priority - 1000 FROM orders
SELECT big + 1 FROM events
-- constants, sets, recursion, aggregates of bits, and queries without tables
SELECT id, (CASE WHEN id > 3 THEN 1 ELSE 1.25 END) / 3 FROM orders ORDER BY id
SELECT id, (CASE WHEN id > 3 THEN total ELSE id END) / 7 FROM orders ORDER BY id
SELECT id, COALESCE(NULL, id, total) / 7 + 0.1234567891234 FROM orders ORDER BY id
SELECT id, IFNULL(id, total) / 7 * 1.00000000000 FROM orders ORDER BY id
SELECT id, IF(id > 3, id, total) / 7 * 1.00000000000 FROM orders ORDER BY id
SELECT id, IF(id > 3, 1, 0.5) * 1.5 / 7 * 1.00000000000 FROM orders ORDER BY id
SELECT id, LEAST(id, total) / 7 * 1.00000000000 FROM orders ORDER BY id
SELECT AVG(IF(id > 3, 1, 0.5)), SUM(IF(id > 3, 1, 0.5)) / 3, MAX(IF(id>3,id,total)) FROM orders
SELECT COUNT(id * id * 1000000000000000000), COUNT(total), COUNT(note) FROM orders
SELECT id, CEIL(1.5), -CEIL(2.5), ABS(-3), ABS(1.5), -CAST(1.5 AS DECIMAL(5,2)), CEIL(3), FLOOR(-1.5), ROUND(2.567, 1), -(-5), NOT 3, 1 = 1 FROM orders WHERE id = 1
SELECT id, 5 DIV 2, 7 / 2, 1 + 1, 2 * 3.5, POW(2, 3), 'a' = 'A', NULL, 1 IS NULL, CONCAT('a', 1), UPPER('x') FROM orders WHERE id = 1
SELECT id, 5 % 3, -7 MOD 3, 0x41, b'101', DATE('2020-01-01'), CAST('7' AS SIGNED), CAST(5 AS CHAR), GREATEST(1, 2), LEAST(1.5, 2), COALESCE(NULL, 1), IF(1, 2, 3), IFNULL(NULL, 'x') FROM orders WHERE id = 1
SELECT 1, id FROM orders WHERE id = 1
SELECT 1 FROM (SELECT 1) x
SELECT 1 UNION SELECT 2.5
WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT o.id, n.i FROM orders o JOIN n ON n.i = o.id ORDER BY 1
SELECT id FROM orders EXCEPT SELECT id FROM items ORDER BY 1
SELECT id FROM orders INTERSECT SELECT id FROM items ORDER BY 1
SELECT id FROM orders WHERE (id, status) IN (SELECT id, status FROM orders WHERE id < 5) ORDER BY id
SELECT MD5('a'), SHA1('x'), CRC32('a')
SELECT DATE_FORMAT('2024-02-03', '%Y/%m'), YEAR('2024-02-03'), DAYNAME('2024-02-03')
SELECT CAST('test collated returns' AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_bin AS anon_1
SELECT CAST('test plain returns' AS CHAR(60)) AS anon_1
SELECT 'x' AS `some label`, POW(2, 10), SQRT(16), SIGN(-3), TRUNCATE(1.999, 1)
SELECT EXTRACT(YEAR FROM '2024-02-03'), LPAD('a', 3, 'b'), REPEAT('ab', 2), ASCII('a'), FIELD('b', 'a', 'b'), ELT(2, 'a', 'b')
SELECT 5 BETWEEN 1 AND 9, 'a' COLLATE utf8mb4_bin = 'A', TRIM(BOTH 'x' FROM 'xax'), POSITION('b' IN 'abc')
SELECT TRUE XOR FALSE, 1 <=> NULL
SELECT CASE WHEN id > 2 THEN id END FROM customers ORDER BY 1
SELECT id AS k, AVG(amount), COUNT((id * id)), SUM(amount * id) FROM events GROUP BY id ORDER BY k
