SELECT now();
