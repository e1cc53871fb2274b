#!/bin/sh
# Stands for the health check of the image mariadb, which has these options: the server can be connected to.
[ "$*" = '--connect --innodb_initialized' ]
exec mariadb --no-defaults --socket=/run/mysqld/mysqld.sock -uroot -p"$MARIADB_ROOT_PASSWORD" -e 'SELECT 1'
