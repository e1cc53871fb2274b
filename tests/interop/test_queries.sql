-- [tables]
CREATE TABLE customers (
        id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
        email VARCHAR(80) COLLATE utf8mb4_general_ci NOT NULL,
        name VARCHAR(40) COLLATE utf8mb4_general_ci,
        city VARCHAR(30) CHARACTER SET latin1 COLLATE latin1_swedish_ci,
        country CHAR(2) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'DE',
        code VARCHAR(20) COLLATE utf8mb4_bin,
        nick VARCHAR(30) COLLATE utf8mb4_unicode_ci,
        tier ENUM('bronze', 'silver', 'gold') COLLATE utf8mb4_general_ci,
        tags SET('new', 'vip', 'b2b') COLLATE utf8mb4_general_ci NOT NULL DEFAULT '',
        born DATE,
        credit DECIMAL(10, 2) NOT NULL DEFAULT 0.00,
        score DOUBLE,
        rating FLOAT,
        joined DATETIME NOT NULL,
        seen TIMESTAMP(3) NULL,
        active TINYINT(1) NOT NULL DEFAULT 1,
        flags BIT(5),
        ref BIGINT UNSIGNED,
        guid UUID,
        ip INET6,
        doc JSON,
        notes TEXT COLLATE utf8mb4_general_ci,
        avatar VARBINARY(16),
        UNIQUE KEY email (email),
        KEY city (city)
    ) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci;;
CREATE TABLE categories (
        id SMALLINT NOT NULL PRIMARY KEY,
        parent_id SMALLINT,
        name VARCHAR(30) NOT NULL
    ) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci;;
CREATE TABLE products (
        id MEDIUMINT NOT NULL PRIMARY KEY,
        sku CHAR(8) COLLATE utf8mb4_bin NOT NULL,
        title VARCHAR(60) COLLATE utf8mb4_general_ci NOT NULL,
        category_id SMALLINT,
        price DECIMAL(8, 2) NOT NULL,
        cost DECIMAL(20, 6),
        stock INT,
        size_cm FLOAT,
        added TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
        picture BLOB,
        UNIQUE KEY sku (sku)
    ) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci;;
CREATE TABLE orders (
        id INT NOT NULL PRIMARY KEY,
        customer_id INT UNSIGNED,
        placed DATETIME NOT NULL,
        shipped DATE,
        status VARCHAR(12) COLLATE utf8mb4_general_ci NOT NULL,
        total DECIMAL(12, 2),
        discount DECIMAL(5, 3),
        weight DOUBLE,
        quantity SMALLINT,
        priority TINYINT UNSIGNED NOT NULL DEFAULT 1,
        note VARCHAR(100) COLLATE utf8mb4_general_ci,
        took TIME(2),
        season YEAR,
        KEY customer_id (customer_id),
        KEY placed (placed)
    ) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci;;
CREATE TABLE items (
        order_id INT NOT NULL,
        line_no TINYINT NOT NULL,
        product_id MEDIUMINT NOT NULL,
        qty INT NOT NULL,
        price DECIMAL(8, 2) NOT NULL,
        PRIMARY KEY (order_id, line_no)
    ) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci;;
CREATE TABLE events (
        id BIGINT NOT NULL PRIMARY KEY,
        at DATETIME(6) NOT NULL,
        kind VARCHAR(10) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL,
        amount DECIMAL(30, 10),
        big BIGINT,
        payload LONGTEXT
    ) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci;;
CREATE TABLE empty_one (id INT NOT NULL PRIMARY KEY, v VARCHAR(10), d DECIMAL(6,2));;
