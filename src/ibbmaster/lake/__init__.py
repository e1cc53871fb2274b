"""Jobs over whole archives, on Spark. Needs the extra `spark`; the commands are `ibbmaster lake …`."""
