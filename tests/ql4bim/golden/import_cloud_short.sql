FROM scan
