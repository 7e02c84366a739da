-- A short tour: a table, a join, a plan with what happened.
CREATE TABLE city (id int PRIMARY KEY, name text NOT NULL, country text);
CREATE TABLE reading (city int, day date, celsius numeric(4,1));
INSERT INTO city VALUES (1, 'Oslo', 'Norway'), (2, 'Quito', 'Ecuador'), (3, 'Suva', 'Fiji');
INSERT INTO reading
  SELECT 1 + i % 3, date '2024-01-01' + i / 3, (i * 37 % 400) / 10.0 - 5
  FROM generate_series(0, 299) AS i;
SELECT country, count(*), min(celsius), round(avg(celsius), 2) AS mean, max(celsius)
  FROM reading JOIN city ON city.id = reading.city
  GROUP BY country ORDER BY country;
SELECT date_trunc('month', day) AS month, name,
       rank() OVER (PARTITION BY date_trunc('month', day) ORDER BY avg(celsius) DESC)
  FROM reading JOIN city ON city.id = reading.city
  GROUP BY 1, 2 ORDER BY 1, 3 LIMIT 6;
EXPLAIN ANALYZE
SELECT name, avg(celsius) FROM reading JOIN city ON city.id = reading.city GROUP BY name;
