
/*!40101 SET NAMES utf8mb4 */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET latin1 */;

USE `shop`;
DROP TABLE IF EXISTS `orders`;
CREATE TABLE `orders` (
  `id` int(11) NOT NULL,
  `note` varchar(9) DEFAULT 'USE x;',
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `orders` VALUES (1,';
USE x;
');
CREATE TABLE lake.t (a int);
/*!50001 CREATE TABLE `seen_as_view` (a int) */;
DELIMITER ;;
CREATE PROCEDURE p()
BEGIN
  SET @a = 1;
  CREATE TEMPORARY TABLE orders (wrong int);
END ;;
DELIMITER ;
USE `my``shop`;
CREATE TABLE t (b int);
