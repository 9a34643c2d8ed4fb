-- How often its owner made an endpoint begin anew: attempts that had begun before tell nothing of it.
alter table kyb_endpoint add column resets integer not null default 0;
