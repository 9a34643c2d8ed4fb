-- The language in which a code is sent, as the wallet's request preferred it.
alter table email_verification add column locale text not null default 'en' check (locale in ('en', 'de', 'fr', 'it', 'es'));
