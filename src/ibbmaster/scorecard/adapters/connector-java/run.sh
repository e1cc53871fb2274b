# Runs the adapter that lies beside this file; its arguments are options of Java.
here=$(dirname "$0")
exec java -Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "$@" -cp "$here/classes:$here/lib/*" Adapter
